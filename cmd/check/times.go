package main

import (
	"fmt"
	"io"
	"time"
)

// stepTimes are the times of the steps so far, in order.
type stepTimes []stepTime

type stepTime struct {
	name string
	took time.Duration
}

// measure runs a step and keeps its time, even if it fails.
func (t *stepTimes) measure(name string, run func() error) error {
	startedAt := time.Now()
	err := run()
	*t = append(*t, stepTime{name, time.Since(startedAt)})
	return err
}

// print writes a table of the steps with their times, and their sum.
func (t *stepTimes) print(w io.Writer) {
	fmt.Fprintln(w, "== seconds of each step")
	var sum time.Duration
	for _, s := range *t {
		fmt.Fprintf(w, "%8.1f  %s\n", s.took.Seconds(), s.name)
		sum += s.took
	}
	fmt.Fprintf(w, "%8.1f  together\n", sum.Seconds())
}
