package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/inventory"
	"lieudit/projections/outbox"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// memory is an index in memory.
type memory struct {
	mu      sync.Mutex
	told    outbox.Told
	sites   map[string]table.Site // by key
	fills   map[string]string     // by key
	away    error                 // what everything fails with
	poison  string                // the external id that is refused
	seals   int
	refused int
	busy    bool
	crowded bool // two told it at once
	before  func(outbox.Batch)
}

func newMemory() *memory {
	return &memory{sites: map[string]table.Site{}, fills: map[string]string{}, before: func(outbox.Batch) {}}
}

func (m *memory) Open(context.Context) (outbox.Told, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	told := m.told
	for _, fill := range m.fills {
		if fill == told.Fill {
			told.Sites++
		}
	}
	return told, m.away
}

func (m *memory) Tell(_ context.Context, b outbox.Batch) error {
	m.mu.Lock()
	m.crowded = m.crowded || m.busy
	m.busy = true
	before := m.before
	m.mu.Unlock()
	before(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
	if m.away != nil {
		return m.away
	}
	for _, s := range b.Sites {
		if s.ExternalID == m.poison {
			m.refused++
			return fmt.Errorf("%w: %s", outbox.ErrRefused, s.ExternalID)
		}
	}
	for _, key := range b.Gone {
		maps.DeleteFunc(m.sites, func(k string, _ table.Site) bool {
			return k == key || strings.HasSuffix(key, "/") && strings.HasPrefix(k, key)
		})
	}
	for _, s := range b.Sites {
		m.sites[s.ID], m.fills[s.ID] = s, b.Fill
	}
	return nil
}

func (m *memory) Seal(_ context.Context, b outbox.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away != nil {
		return m.away
	}
	m.told = outbox.Told{Fill: b.Fill, Position: b.Position}
	m.seals++
	maps.DeleteFunc(m.sites, func(key string, _ table.Site) bool { return m.fills[key] != b.Fill })
	maps.DeleteFunc(m.fills, func(key string, _ string) bool { return m.sites[key].ID == "" })
	return nil
}

// change changes the index as somebody else would.
func (m *memory) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// ids are the sites in the index with their version.
func (m *memory) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := []string{}
	for _, s := range m.sites {
		found = append(found, fmt.Sprintf("%s/%d", s.ExternalID, s.Version))
	}
	slices.Sort(found)
	return found
}

// world is a read model with an outbox that is told to an index.
type world struct {
	*projectortest.Stage
	t      *testing.T
	index  *memory
	outbox *outbox.Outbox
	model  projector.Model
	log    *lines
}

const stream = "locations-a"

func start(t *testing.T, address string) *world {
	t.Helper()
	shelf, err := table.OpenShelf(address)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, index: newMemory(), log: &lines{}}
	w.outbox = outbox.New(w.index, shelf)
	w.outbox.Log = slog.New(slog.NewTextHandler(w.log, nil))
	w.model = inventory.Model(true)
	w.model.Beside = w.outbox.Run
	w.Stage = projectortest.Start(t, address, w.model)
	t.Cleanup(func() {
		w.Restart() // so that nothing reads the shelf
		shelf.Close()
	})
	return w
}

func row(op, id string, version int64) event.SiteRow {
	r := event.SiteRow{ExternalID: id, Site: "site of " + id, Op: op, Version: version}
	if op != event.SiteDeactivated {
		r.Content = "{}"
	}
	return r
}

// put appends a change of sites.
func (w *world) put(rows ...event.SiteRow) eventstore.Position {
	w.t.Helper()
	written := event.SitesWritten{Referential: "shops", Action: "sync", After: len(rows)}
	return projectortest.Append(w.t, w.Log, w.Codec, stream, event.SitesChanged{SitesWritten: written, Rows: rows})
}

// open opens the referential.
func (w *world) open() { w.Append(stream, event.ReferentialOpened{Code: "shops"}) }

// holds waits until the index holds these sites and nothing is left to be told.
func (w *world) holds(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.until(func() (string, bool) {
		s, err := w.outbox.State(w.t.Context())
		got := w.index.ids()
		return fmt.Sprintf("got %v, %+v, %v, want %v", got, s, err, want), slices.Equal(got, want) && err == nil && s.Waiting == 0
	})
}

func (w *world) until(reached func() (string, bool)) {
	w.t.Helper()
	for deadline := time.Now().Add(deadlinetest.Limit(deadlinetest.Hang)); ; time.Sleep(5 * time.Millisecond) {
		got, ok := reached()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal(got)
		}
	}
}

// sealed waits until the index was sealed so often.
func (w *world) sealed(times int) {
	w.t.Helper()
	w.until(func() (string, bool) {
		w.index.mu.Lock()
		defer w.index.mu.Unlock()
		return fmt.Sprintf("it was sealed %d times", w.index.seals), w.index.seals >= times
	})
}

// lines counts log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) with(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), word)
}

var errAway = errors.New("connection refused")
