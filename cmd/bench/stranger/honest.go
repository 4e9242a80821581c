package stranger

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	"lieudit/cmd/bench/measure"
)

// answerTimeout is how long a customer waits for an answer, and customers and stranger for a connection.
const answerTimeout = 30 * time.Second

// kind is one kind of request that customers send.
type kind struct {
	name    string
	request func(c customer, w *world, n int) request
}

// kinds returns the kinds of requests that customers send, in turn. The addresses are those of the world.
func kinds() []kind {
	get := func(name string, path func(w *world, n int) string) kind {
		return kind{name, func(c customer, w *world, n int) request { return request{method: "GET", path: path(w, n), key: c.key} }}
	}
	return []kind{
		get("verify", func(w *world, n int) string { return "/address/verify?q=" + url.QueryEscape(w.place(n).address()) }),
		get("autocomplete", func(w *world, n int) string {
			text := []rune(w.place(n).address())
			return "/address/autocomplete?q=" + url.QueryEscape(string(text[:min(len(text), 4+n%12)]))
		}),
		get("me", func(*world, int) string { return "/me" }),
		get("search", func(w *world, n int) string { return "/locations/search?q=" + url.QueryEscape(siteName(n)) }),
		{"upsert", func(c customer, w *world, n int) request {
			p := w.place(n)
			text := fmt.Sprintf(`{"nom":%q,"lat":%.6f,"lon":%.6f,"telephone":"04 66 %02d %02d 00"}`, siteName(n), p.lat, p.lon, n%100, n/100%100)
			return request{method: "PUT", path: fmt.Sprintf("%s/sites/site-%d", referentialPath, n%honestSites), key: c.key, body: jsonContent(text)}
		}},
		get("route", func(w *world, n int) string {
			from, to := w.place(n), w.place(n+1) // near each other, since places are in the order of streets
			return fmt.Sprintf("/route/compute?origin=%s&destination=%s", from.position(), to.position())
		}),
	}
}

// honestSites is how many sites a customer has.
const honestSites = 20

// siteName returns the name of a customer's n-th site.
func siteName(n int) string {
	return [...]string{"Boulangerie", "Pharmacie", "Librairie", "Fromagerie"}[n%4] + fmt.Sprintf(" %d", n%honestSites)
}

// customer is an honest account. It uses one connection.
type customer struct{ key string }

// measurement is what the customers measured in one phase. It is safe for concurrent use.
type measurement struct {
	mu          sync.Mutex
	latencies   map[string]*measure.Latencies // of answers below 400, by kind
	refused     map[string]int                // by "kind: status", or "kind: failure" if there was no answer
	requests    int
	reconnected int // requests sent again because a kept connection had been closed
}

func newMeasurement() *measurement {
	m := &measurement{latencies: map[string]*measure.Latencies{}, refused: map[string]int{}}
	for _, k := range kinds() {
		m.latencies[k.name] = measure.NewLatencies()
	}
	return m
}

// record adds one request.
func (m *measurement) record(kind string, took time.Duration, status int, isReconnected bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	if isReconnected {
		m.reconnected++
	}
	switch {
	case err != nil:
		m.refused[kind+": "+describeFailure(err)]++
	case status >= 400:
		m.refused[fmt.Sprintf("%s: %d", kind, status)]++
	default:
		m.latencies[kind].Record(took)
	}
}

// figures returns the latencies of each kind, and last those of AllKinds.
func (m *measurement) figures() (all []Latency) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := measure.NewLatencies()
	for _, k := range kinds() {
		all = append(all, newLatency(k.name, m.latencies[k.name]))
		sum.Merge(m.latencies[k.name])
	}
	return append(all, newLatency(AllKinds, sum))
}

// measureHonest lets every customer send at its rate for a duration, or until the service ends.
func (r *run) measureHonest(ctx context.Context, duration time.Duration) *measurement {
	m := newMeasurement()
	customers := r.world.customers
	began := time.Now()
	runAll(len(customers), func(i int) {
		s := &session{customer: customers[i], host: r.target.address}
		defer s.disconnect()
		interval := time.Second / time.Duration(r.Rate)
		offset := interval * time.Duration(i) / time.Duration(len(customers))
		for n := 0; ; n++ {
			// The time counts from when the request was due, so that a slow answer counts for the requests that it delays too.
			due := began.Add(offset + time.Duration(n)*interval)
			if due.Sub(began) >= duration || time.Since(began) >= duration || !r.waitUntil(ctx, due) {
				return
			}
			k := kinds()[(n+i)%len(kinds())]
			status, isReconnected, err := s.send(ctx, k.request(s.customer, r.world, n*len(customers)+i))
			if !r.target.hasEnded() && ctx.Err() == nil {
				m.record(k.name, time.Since(due), status, isReconnected, err)
			}
		}
	})
	return m
}

// waitUntil waits for an instant, and reports whether neither ctx nor the service has ended meanwhile.
func (r *run) waitUntil(ctx context.Context, at time.Time) bool {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-r.target.exited:
		return false
	case <-timer.C:
		return true
	}
}

// startCrowd starts customers who send requests over n connections, each once the last one is answered, until ctx ends. The function
// that it returns waits for their end.
func (r *run) startCrowd(ctx context.Context, n int) (ended func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runAll(n, func(i int) {
			s := &session{customer: r.world.crowd[i%len(r.world.crowd)], host: r.target.address}
			defer s.disconnect()
			for at := i; ctx.Err() == nil && !r.target.hasEnded(); at += n {
				if _, _, err := s.send(ctx, kinds()[at%len(kinds())].request(s.customer, r.world, at)); err != nil && !pauseFor(ctx, 100*time.Millisecond) {
					return
				}
			}
		})
	}()
	return func() { <-done }
}

// session is the connection of a customer. It is opened when it is needed, and kept.
type session struct {
	customer customer
	host     string
	conn     *conn
}

// send sends a request and returns the status of its answer. If a kept connection turns out to be closed, it sends the request
// once more on a new one, as HTTP clients do with requests that may be repeated. All kinds may be.
func (s *session) send(ctx context.Context, q request) (status int, isReconnected bool, err error) {
	isKept := s.conn != nil
	status, err = s.sendOnce(ctx, q)
	if err == nil || !isKept || isTimeout(err) {
		return status, false, err
	}
	status, err = s.sendOnce(ctx, q)
	return status, true, err
}

// sendOnce sends a request on the connection, and closes it if the connection cannot be used again.
func (s *session) sendOnce(ctx context.Context, q request) (status int, err error) {
	if s.conn == nil {
		if s.conn, err = dial(ctx, honestSource, s.host); err != nil {
			return 0, err
		}
	}
	s.conn.SetDeadline(time.Now().Add(answerTimeout))
	if ctx.Err() != nil {
		return 0, context.Cause(ctx) // SetDeadline may just have replaced the deadline that the end of ctx had set
	}
	status, isKept, err := s.conn.exchange(q)
	if !isKept {
		s.disconnect()
	}
	return status, err
}

func (s *session) disconnect() {
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
}

// runAll calls work with the numbers below n at the same time, and returns when all have returned.
func runAll(n int, work func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { work(i) })
	}
	group.Wait()
}

// isTimeout reports whether an error is a timeout.
func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}
