package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"lieudit/cmd/bench/measure"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/schemas/body"
	"lieudit/schemas/table"
)

// meters are the totals of a service at one moment.
type meters struct {
	events    float64 // of usage that it has written
	position  uint64  // of the last event of usage in its log; a position counts bytes
	processor time.Duration
	node      time.Duration // processor time of its node; 0 if the log is not on a node of this run
}

// The extra numbers that say what requests cost. The bytes are those that the log grew by, with all that it writes around an
// event; files that are filled with zeros in advance do not count. The processor time is in microseconds for one request,
// and includes the read models' share, because they have caught up before it is read.
const (
	EventsPerMillion = "events per million"
	MBPerMillion     = "log MB per million"
	ProcessorTime    = "processor us"
	nodeTime         = "node us"
)

// since returns what each of the requests between two readings cost, as extra numbers of a figure. A processor time that this
// system does not tell is left out.
func (m meters) since(before meters, requests int) map[string]float64 {
	extra := map[string]float64{
		EventsPerMillion: (m.events - before.events) / float64(requests) * 1e6,
		MBPerMillion:     float64(m.position-before.position) / float64(requests), // megabytes a million are bytes each
	}
	addProcessorTime(extra, ProcessorTime, m.processor-before.processor, requests)
	addProcessorTime(extra, nodeTime, m.node-before.node, requests)
	return extra
}

// addProcessorTime adds the microseconds for each request. It adds nothing if the time was not measured.
func addProcessorTime(extra map[string]float64, name string, total time.Duration, requests int) {
	if total > 0 {
		extra[name] = float64(total.Nanoseconds()) / 1e3 / float64(requests)
	}
}

// readMeters reads the totals once every read model has caught up. It asks for the usage of an account first: the service
// answers that as soon as its read model shows all requests before, which takes fewer looks at the log than asking for the lag
// of all read models again and again.
func (r *run) readMeters(ctx context.Context, account string) (m meters, err error) {
	if _, err := r.Admin.Get(ctx, adminclient.JoinPath("", "accounts", account, "usage"), nil); err != nil {
		return m, err
	}
	if err := r.Admin.WaitCaughtUp(ctx); err != nil {
		return m, err
	}
	m.processor, m.node = measure.ProcessorTimeOf(r.PID()), measure.ProcessorTimeOf(r.NodePID())
	if m.events, err = r.countUsageEvents(ctx); err != nil {
		return m, err
	}
	m.position, err = r.usagePosition(ctx)
	return m, err
}

// usagePosition is the position in the log that the read model of usage has reached.
func (r *run) usagePosition(ctx context.Context) (position uint64, err error) {
	raw, err := r.Admin.Get(ctx, "/projections", nil)
	if err != nil {
		return 0, err
	}
	var all body.Projections
	if err := json.Unmarshal(raw, &all); err != nil {
		return 0, err
	}
	for _, g := range all.Results {
		if g.Name == table.UsageModel.Name {
			position = max(position, g.Position)
		}
	}
	if position == 0 {
		return 0, fmt.Errorf("read model %s has no position", table.UsageModel.Name)
	}
	return position, nil
}

// eventsMetric is the metric of the service that counts the events of usage that it has written.
const eventsMetric = "lieudit_usage_events_total"

// countUsageEvents is how many events of usage the service has written so far.
func (r *run) countUsageEvents(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Ops+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), eventsMetric+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("the service has no metric %s", eventsMetric)
}
