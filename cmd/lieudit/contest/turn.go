package contest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/caller"
)

// try is what came of one turn.
type try struct {
	perSecond, p50, p99 float64
	requests, events    float64
}

// turn asks over so many connections for the time of a turn. Connections share the requests out among themselves.
func (f *field) turn(ctx context.Context, address string, connections int, requests [][]byte) (try, error) {
	before, err := f.written(ctx)
	if err != nil {
		return try{}, err
	}
	times := make([]caller.Times, connections)
	var work errgroup.Group
	began := time.Now()
	for i := range connections {
		work.Go(func() (err error) {
			times[i], err = ask(ctx, address, share(requests, i, connections), began.Add(f.Turn))
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return try{}, err
	}
	took := time.Since(began)
	after, err := f.written(ctx)
	all := caller.Times(slices.Concat(times...))
	all.Sort()
	return try{
		perSecond: float64(len(all)) / took.Seconds(), p50: ms(all.Quantile(0.5)), p99: ms(all.Quantile(0.99)),
		requests: float64(len(all)), events: after - before,
	}, err
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// share is the requests of one connection of many.
func share(requests [][]byte, i, connections int) (mine [][]byte) {
	for at := i % len(requests); at < len(requests); at += connections {
		mine = append(mine, requests[at])
	}
	return mine
}

// ask sends requests one after the other until an instant, and says how long each answer took.
func ask(ctx context.Context, address string, requests [][]byte, until time.Time) (times caller.Times, err error) {
	c, err := caller.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for n, last := 0, time.Now(); last.Before(until); n++ {
		status, err := c.Ask(requests[n%len(requests)])
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("answered %d", status)
		}
		if err != nil {
			return nil, err
		}
		now := time.Now()
		times = append(times, now.Sub(last))
		last = now
	}
	return times, nil
}

// warm asks each request once.
func warm(ctx context.Context, address string, requests [][]byte) error {
	c, err := caller.Dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, r := range requests {
		status, err := c.Ask(r)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("answered %d", status)
		}
		if err != nil {
			return fmt.Errorf("first request: %w", err)
		}
	}
	return nil
}

// eventsMetric is what an instance calls the events of usage it has written.
const eventsMetric = "lieudit_usage_events_total "

// written is how many events of usage the service has written.
func (f *field) written(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.service.Ops+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), eventsMetric); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the service does not tell %s", strings.TrimSpace(eventsMetric))
}
