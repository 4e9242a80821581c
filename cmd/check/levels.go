package main

import (
	"errors"
	"flag"
	"io"

	"lieudit/eventstore/leveltest"
)

// options are what the command line asks for.
type options struct {
	level  leveltest.Level
	factor int // of the time limits in the tests
}

// leftOut is what a level leaves to the next ones, for the last line of its output.
var leftOut = map[leveltest.Level]string{
	leveltest.Quick: "Postgres, the browser, staticcheck, whole processes, large numbers of generated inputs and simulated days, which go run ./cmd/check adds; and what -all adds to those",
	leveltest.Usual: "the race detector, other systems' builds, proxies, PgBouncer, foreign clients, OSRM and Valhalla, full disks, long simulations and published vulnerabilities, which go run ./cmd/check -all adds",
}

// parseOptions parses the command line.
func parseOptions(args []string, usage io.Writer) (options, error) {
	flags := flag.NewFlagSet("check", flag.ContinueOnError)
	flags.SetOutput(usage)
	quick := flags.Bool("quick", false, "what needs Go alone, for use between two edits")
	all := flags.Bool("all", false, "everything, as in CI; it installs proxies, clients and routing servers")
	busy := flags.Bool("busy", false, "give every limit of time in the tests three times as long")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o := options{leveltest.Usual, 1}
	switch {
	case flags.NArg() > 0:
		return o, errors.New("there are no arguments, only flags")
	case *quick && *all:
		return o, errors.New("-quick or -all, not both")
	case *quick:
		o.level = leveltest.Quick
	case *all:
		o.level = leveltest.Whole
	}
	if *busy {
		o.factor = busyFactor
	}
	return o, nil
}
