package searchindex_test

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
	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/searchindex"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

// memoryIndex is an Index in memory that can refuse, fail and be lost.
type memoryIndex struct {
	mu            sync.Mutex
	state         searchindex.IndexState
	sites         map[string]table.Site // by key
	generations   map[string]string     // by key
	err           error                 // every call fails with it
	refusedID     string                // the external id of the site that is refused
	saves         int
	refused       int
	isBusy        bool
	hasOverlapped bool // two instances wrote at once
	before        func(searchindex.Batch)
}

func newMemoryIndex() *memoryIndex {
	return &memoryIndex{sites: map[string]table.Site{}, generations: map[string]string{}, before: func(searchindex.Batch) {}}
}

func (m *memoryIndex) Open(context.Context) (searchindex.IndexState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state := m.state
	for _, generation := range m.generations {
		if generation == state.Generation {
			state.Sites++
		}
	}
	return state, m.err
}

func (m *memoryIndex) ApplyBatch(_ context.Context, b searchindex.Batch) error {
	m.mu.Lock()
	m.hasOverlapped = m.hasOverlapped || m.isBusy
	m.isBusy = true
	before := m.before
	m.mu.Unlock()
	before(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isBusy = false
	if m.err != nil {
		return m.err
	}
	for _, s := range b.Sites {
		if s.ExternalID == m.refusedID {
			m.refused++
			return fmt.Errorf("%w: %s", searchindex.ErrRefused, s.ExternalID)
		}
	}
	for _, key := range b.Deleted {
		maps.DeleteFunc(m.sites, func(k string, _ table.Site) bool {
			return k == key || strings.HasSuffix(key, "/") && strings.HasPrefix(k, key)
		})
	}
	for _, s := range b.Sites {
		m.sites[s.ID], m.generations[s.ID] = s, b.Generation
	}
	return nil
}

func (m *memoryIndex) SaveProgress(_ context.Context, b searchindex.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.state = searchindex.IndexState{Generation: b.Generation, Position: b.Position}
	m.saves++
	maps.DeleteFunc(m.sites, func(key string, _ table.Site) bool { return m.generations[key] != b.Generation })
	maps.DeleteFunc(m.generations, func(key string, _ string) bool { return m.sites[key].ID == "" })
	return nil
}

// modify changes the index behind the indexer's back.
func (m *memoryIndex) modify(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// indexedIDs returns the sites in the index with their version.
func (m *memoryIndex) indexedIDs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := []string{}
	for _, s := range m.sites {
		found = append(found, fmt.Sprintf("%s/%d", s.ExternalID, s.Version))
	}
	slices.Sort(found)
	return found
}

// fixture is a read model with an outbox that is indexed.
type fixture struct {
	*projectortest.Fixture
	t       *testing.T
	index   *memoryIndex
	indexer *searchindex.Indexer
	model   projector.Model
	log     *logBuffer
}

const stream = "locations-a"

func startFixture(t *testing.T, address string) *fixture {
	t.Helper()
	registry, err := sqldb.OpenRegistry(address)
	if err != nil {
		t.Fatal(err)
	}
	w := &fixture{t: t, index: newMemoryIndex(), log: &logBuffer{}}
	w.indexer = searchindex.New(w.index, registry, slog.New(slog.NewTextHandler(w.log, nil)))
	w.model = locations.Model(true)
	w.model.OwnerTask = w.indexer.Run
	w.Fixture = projectortest.Start(t, address, w.model)
	t.Cleanup(func() {
		w.Restart() // so that nothing reads the registry
		registry.Close()
	})
	return w
}

func siteRow(op, id string, version int64) event.SiteRow {
	r := event.SiteRow{ExternalID: id, SiteID: "site of " + id, Operation: op, Version: version}
	if op != event.SiteDeactivated {
		r.Content = "{}"
	}
	return r
}

// appendSites appends a change of sites.
func (w *fixture) appendSites(rows ...event.SiteRow) eventstore.Position {
	w.t.Helper()
	written := event.SiteWriteSummary{Referential: "shops", Action: "sync", ActiveAfter: len(rows)}
	return projectortest.Append(w.t, w.Log, w.Codec, stream, event.SitesChanged{SiteWriteSummary: written, Rows: rows})
}

func (w *fixture) openReferential() { w.Append(stream, event.ReferentialOpened{Code: "shops"}) }

// awaitIndexed waits until the index holds these sites and the outbox is empty.
func (w *fixture) awaitIndexed(want ...string) {
	w.t.Helper()
	slices.Sort(want)
	w.await(func() (string, bool) {
		s, err := w.indexer.Backlog(w.t.Context())
		got := w.index.indexedIDs()
		return fmt.Sprintf("got %v, %+v, %v, want %v", got, s, err, want), slices.Equal(got, want) && err == nil && s.Pending == 0
	})
}

func (w *fixture) await(reached func() (string, bool)) {
	w.t.Helper()
	for deadline := time.Now().Add(deadlinetest.Scale(deadlinetest.DefaultLimit)); ; time.Sleep(5 * time.Millisecond) {
		got, ok := reached()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal(got)
		}
	}
}

// awaitSaves waits until progress was saved that many times.
func (w *fixture) awaitSaves(times int) {
	w.t.Helper()
	w.await(func() (string, bool) {
		w.index.mu.Lock()
		defer w.index.mu.Unlock()
		return fmt.Sprintf("it was sealed %d times", w.index.saves), w.index.saves >= times
	})
}

// logBuffer keeps log lines for counting.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) count(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), word)
}

var errUnreachable = errors.New("connection refused")
