package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"lieudit/http/problem"
)

// Fragment is a part of a page that changes while it is open: a template, whose text replaces the content of the element with the ID.
type Fragment struct {
	ID       string
	Template string
	Data     any // .Data in the template
}

const (
	// liveInterval is how often fragments are made again, and heartbeat how often at least something is sent.
	liveInterval = time.Second / 2
	heartbeat    = 15 * time.Second
)

// Live is the view of a stream of events, which the script of the element with data-live reads. Twice a second it asks for the fragments, and
// sends those that have changed. It ends with the session, with the service, and when the browser leaves. While the service cannot
// answer, the page is told so, and keeps what it shows.
func (q *Request) Live(load func() ([]Fragment, error)) View { return q.LiveEvery(liveInterval, load) }

// LiveEvery is Live with an interval of its own, for fragments that cost much.
func (q *Request) LiveEvery(interval time.Duration, load func() ([]Fragment, error)) View {
	return View{Stream: func(w http.ResponseWriter, r *http.Request) error {
		if !q.Site.streams.begin(q.Principal.Session) {
			w.WriteHeader(http.StatusNoContent) // a browser does not try again
			return nil
		}
		defer q.Site.streams.end(q.Principal.Session)
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("X-Accel-Buffering", "no") // nginx would keep the events back
		w.WriteHeader(http.StatusOK)
		stream := liveStream{q: q, w: w, interval: interval, sent: map[string]string{}}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for !q.Site.IsStopping() && stream.step(load) {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return nil
			}
		}
		return nil
	}}
}

// maxStreams is how many streams a session has at most: each asks for its fragments every second. A browser opens six at once.
const maxStreams = 12

// streamCounts are how many streams each session has. The zero value is ready.
type streamCounts struct {
	mu    sync.Mutex
	byOne map[string]int // by session
}

// begin reports whether a session may have one more stream, and counts it.
func (s *streamCounts) begin(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOne[session] == maxStreams {
		return false
	}
	if s.byOne == nil {
		s.byOne = map[string]int{}
	}
	s.byOne[session]++
	return true
}

func (s *streamCounts) end(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byOne[session]--; s.byOne[session] == 0 {
		delete(s.byOne, session)
	}
}

type liveStream struct {
	interval time.Duration
	q        *Request
	w        http.ResponseWriter
	sent     map[string]string // by id
	quiet    time.Duration     // since something was sent
	isStale  bool
}

// step sends what has changed, and reports whether the stream continues.
func (l *liveStream) step(load func() ([]Fragment, error)) bool {
	l.quiet += l.interval
	p, err := l.q.Site.area.Authenticate(l.q.Request)
	if err == nil {
		l.q.Principal = p
		var all []Fragment
		if all, err = load(); err == nil {
			err = l.sendChanged(all)
		}
	}
	status := problem.StatusOf(err)
	switch {
	case err == nil && l.isStale:
		l.isStale = false
		l.send("fresh", "")
	case status >= 500 && !l.isStale:
		l.isStale = true
		l.send("stale", "")
	case status == http.StatusUnauthorized:
		l.send("end", "")
		return false
	case err != nil && status < 500:
		return false
	case l.quiet >= heartbeat:
		l.send("alive", "")
	}
	return http.NewResponseController(l.w).Flush() == nil
}

func (l *liveStream) sendChanged(all []Fragment) error {
	for _, f := range all {
		var text bytes.Buffer
		if err := l.q.templates.ExecuteTemplate(&text, f.Template, data{Request: l.q, View: View{Data: f.Data}}); err != nil {
			return fmt.Errorf("fragment %s: %w", f.Template, err)
		}
		if content := text.String(); l.sent[f.ID] != content {
			l.sent[f.ID] = content
			message, err := json.Marshal(map[string]string{"id": f.ID, "html": content})
			if err != nil {
				return err
			}
			l.send("fragment", string(message))
		}
	}
	return nil
}

// send writes one event. That the browser has left is noticed by the flush.
func (l *liveStream) send(name, message string) {
	l.quiet = 0
	fmt.Fprintf(l.w, "event: %s\ndata: %s\n\n", name, message)
}
