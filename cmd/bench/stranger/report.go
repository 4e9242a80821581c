package stranger

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"

	"lieudit/cmd/bench/measure"
)

// Together is the name of the turn in which all attacks run, and AllKinds the kind that stands for all kinds of requests.
const (
	Together = "all together"
	AllKinds = "all"
)

// Report is the result of a run. Without violations, the stranger did the other customers no harm.
type Report struct {
	Seed       uint64    `json:"seed"`
	Program    string    `json:"program,omitempty"` // "" for the program that runs the benchmark
	Seconds    float64   `json:"seconds"`           // planned for the stranger
	Alone      []Latency `json:"alone"`
	Crowds     []Crowd   `json:"crowds"`
	Turns      []Turn    `json:"turns"`
	PeakMiB    float64   `json:"peak_mib"`  // of anonymous memory in all turns
	FinalMiB   float64   `json:"final_mib"` // of anonymous memory after the last turn
	Violations []string  `json:"violations"`
}

// Latency is how long customers waited for answers of a kind, in milliseconds from when a request was due.
type Latency struct {
	Kind     string  `json:"kind"`
	Requests int     `json:"requests"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
}

// Crowd is the phase of the customers along with a number of honest connections.
type Crowd struct {
	Connections int            `json:"connections"`
	Figures     []Latency      `json:"figures"`
	Refused     map[string]int `json:"refused"` // as in Turn
}

// Turn is the time of one attack, or of all together.
type Turn struct {
	Attack      string                    `json:"attack"`
	Connections int                       `json:"connections"` // that the service works for at once
	Seconds     float64                   `json:"seconds"`
	BaseMiB     float64                   `json:"base_mib"` // of anonymous memory before it
	PeakMiB     float64                   `json:"peak_mib"`
	BusySeconds float64                   `json:"busy_seconds"` // for which the service continued to work after it
	Died        bool                      `json:"died"`
	Guarded     bool                      `json:"guarded"` // the process died because the watcher killed it at MemoryGuard
	Figures     []Latency                 `json:"figures"`
	Requests    int                       `json:"requests"` // of customers
	Refused     map[string]int            `json:"refused"`  // requests of customers, by kind and status or failure
	Reconnected int                       `json:"reconnected"`
	Outcomes    map[string]map[string]int `json:"outcomes"`      // of the stranger's requests, by attack and by status or end of the connection
	HonestP99   float64                   `json:"honest_p99_ms"` // along with as many honest connections
	Ratio       float64                   `json:"ratio"`         // the p99 of all kinds divided by HonestP99
}

func newReport(o Options) Report {
	return Report{Seed: o.Seed, Program: o.Program, Seconds: o.For.Seconds(), Violations: []string{}}
}

func newLatency(kind string, l *measure.Latencies) Latency {
	f := l.Figure()
	return Latency{kind, f.Samples, f.P50, f.P99, f.Max}
}

// addMeasurement adds the measurement of the customers.
func (t *Turn) addMeasurement(m *measurement) {
	t.Figures = m.figures()
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Requests, t.Refused, t.Reconnected = m.requests, m.refused, m.reconnected
}

// FindLatency returns the Latency of a kind, or the zero Latency if the kind does not occur.
func FindLatency(figures []Latency, kind string) Latency {
	if i := slices.IndexFunc(figures, func(l Latency) bool { return l.Kind == kind }); i >= 0 {
		return figures[i]
	}
	return Latency{}
}

// judge checks every turn against the limits, adds the violations to the report, and completes the figures. It is called once, at the
// end.
func (rep *Report) judge() {
	for _, c := range rep.Crowds {
		if len(c.Refused) > 0 {
			rep.addViolation("along with %d honest connections: requests of customers failed with %s", c.Connections, FormatCounts(c.Refused))
		}
	}
	for i := range rep.Turns {
		t := &rep.Turns[i]
		rep.PeakMiB = max(rep.PeakMiB, t.PeakMiB)
		rep.judgeProcess(t)
		rep.judgeAnswers(t)
		rep.judgeLatencies(t)
	}
}

// judgeProcess checks the memory of the process, and that it did not end.
func (rep *Report) judgeProcess(t *Turn) {
	switch {
	case t.Guarded:
		rep.addViolation("%s: the process reached %.0f MiB of anonymous memory and was killed after %.0f s", t.Attack, t.PeakMiB, t.Seconds)
	case t.Died:
		rep.addViolation("%s: the process ended after %.0f s, at %.0f MiB", t.Attack, t.Seconds, t.PeakMiB)
	case t.PeakMiB >= inMiB(memoryBound):
		rep.addViolation("%s: the process had %.0f MiB of anonymous memory", t.Attack, t.PeakMiB)
	}
}

// judgeAnswers checks that customers were answered.
func (rep *Report) judgeAnswers(t *Turn) {
	for _, what := range slices.Sorted(maps.Keys(t.Refused)) {
		rep.addViolation("%s: %d of %d requests of customers failed with %s", t.Attack, t.Refused[what], t.Requests, what)
	}
	if len(t.Refused) == 0 && !t.Died && FindLatency(t.Figures, AllKinds).Requests == 0 {
		rep.addViolation("%s: no customer was answered", t.Attack)
	}
}

// judgeLatencies compares the p99 during a turn with the p99 along with as many honest connections. A turn of one attack is too short for
// a p99 of each kind, so its kinds are judged together; those of the last turn are judged one by one.
func (rep *Report) judgeLatencies(t *Turn) {
	if t.HonestP99 = rep.honestP99(AllKinds, t.Connections); t.HonestP99 > 0 {
		t.Ratio = FindLatency(t.Figures, AllKinds).P99 / t.HonestP99
	}
	for _, got := range t.Figures {
		if (t.Attack == Together) == (got.Kind == AllKinds) {
			continue
		}
		want := rep.honestP99(got.Kind, t.Connections)
		if got.P99 > latencyBound*want && got.P99 > inMilliseconds(noise) {
			rep.addViolation("%s: the p99 of customers (%s) was %.0f ms; along with %d honest connections it is %.0f ms", t.Attack, got.Kind, got.P99, t.Connections, want)
		}
	}
}

// honestP99 returns the p99 of a kind along with n honest connections. Fewer connections are slower only by chance, so it returns the
// highest p99 that was measured with at most n.
func (rep *Report) honestP99(kind string, n int) float64 {
	highest := FindLatency(rep.Alone, kind).P99
	for _, c := range rep.Crowds {
		if c.Connections <= n {
			highest = max(highest, FindLatency(c.Figures, kind).P99)
		}
	}
	return highest
}

func (rep *Report) addViolation(format string, args ...any) {
	rep.Violations = append(rep.Violations, fmt.Sprintf(format, args...))
}

// describeFailure returns in a few words why there was no answer, so that equal failures are counted together.
func describeFailure(err error) string {
	for _, known := range []struct {
		is   error
		text string
	}{
		{syscall.ECONNREFUSED, "connection refused"}, {syscall.ECONNRESET, "connection reset"}, {syscall.EPIPE, "connection reset"},
		{syscall.EADDRNOTAVAIL, "no port left"}, {syscall.EMFILE, "no descriptor left"}, {io.EOF, "connection closed"}, {io.ErrUnexpectedEOF, "answer cut"},
	} {
		if errors.Is(err, known.is) {
			return known.text
		}
	}
	if isTimeout(err) {
		return "no answer in time"
	}
	text := err.Error()
	return text[strings.LastIndex(text, ": ")+1:]
}

// FormatCounts formats counts, the largest first, as in "200 × 12, 429 × 3".
func FormatCounts(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s × %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}

func inMiB(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// inMilliseconds converts to the unit of all latencies.
func inMilliseconds(d interface{ Seconds() float64 }) float64 { return 1000 * d.Seconds() }
