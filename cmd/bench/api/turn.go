package api

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

	"lieudit/cmd/bench/loadclient"
)

// result is what came of one turn.
type result struct {
	perSecond, p50, p99 float64
	requests, events    float64
}

// measureRound asks over so many connections for the time of a turn. Connections share the requests out among themselves.
func (f *environment) measureRound(ctx context.Context, address string, connections int, requests [][]byte) (result, error) {
	before, err := f.readWrittenEvents(ctx)
	if err != nil {
		return result{}, err
	}
	latencies := make([]loadclient.Latencies, connections)
	var work errgroup.Group
	began := time.Now()
	for i := range connections {
		work.Go(func() (err error) {
			latencies[i], err = sendUntil(ctx, address, shareRequests(requests, i, connections), began.Add(f.RoundDuration))
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	after, err := f.readWrittenEvents(ctx)
	all := loadclient.Latencies(slices.Concat(latencies...))
	all.Sort()
	return result{
		perSecond: float64(len(all)) / took.Seconds(), p50: ms(all.Quantile(0.5)), p99: ms(all.Quantile(0.99)),
		requests: float64(len(all)), events: after - before,
	}, err
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// shareRequests is the requests of one connection of many.
func shareRequests(requests [][]byte, i, connections int) (mine [][]byte) {
	for at := i % len(requests); at < len(requests); at += connections {
		mine = append(mine, requests[at])
	}
	return mine
}

// sendUntil sends requests one after the other until an instant, and says how long each answer took.
func sendUntil(ctx context.Context, address string, requests [][]byte, deadline time.Time) (latencies loadclient.Latencies, err error) {
	c, err := loadclient.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for n, last := 0, time.Now(); last.Before(deadline); n++ {
		status, err := c.Send(requests[n%len(requests)])
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("answered %d", status)
		}
		if err != nil {
			return nil, err
		}
		now := time.Now()
		latencies = append(latencies, now.Sub(last))
		last = now
	}
	return latencies, nil
}

// sendEachOnce asks each request once.
func sendEachOnce(ctx context.Context, address string, requests [][]byte) error {
	c, err := loadclient.Dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	for _, r := range requests {
		status, err := c.Send(r)
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

// readWrittenEvents is how many events of usage the service has readWrittenEvents.
func (f *environment) readWrittenEvents(ctx context.Context) (float64, error) {
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
