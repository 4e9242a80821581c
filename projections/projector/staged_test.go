package projector_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

var recordedModel = table.ReadModel{Name: "noted", Version: 1, Tables: []table.Def{table.Outbox.Def}}

// recorder is a model that records, by batch, what its handlers receive.
type recorder struct {
	mu      sync.Mutex
	batches []*projector.Changeset
	records map[*projector.Changeset][]projector.Record
}

func (n *recorder) model() projector.Model {
	n.records = map[*projector.Changeset][]projector.Record{}
	note := func(b *projector.Changeset, _ event.Event, r projector.Record) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.records[b] == nil {
			n.batches = append(n.batches, b)
		}
		n.records[b] = append(n.records[b], r)
	}
	return projector.Model{ReadModel: recordedModel, NeedsPersonalData: true, NeedsReasons: true, Handlers: []projector.EventHandler{projector.OnAnyOther(note, "locations")}}
}

func (s *cluster) appendStaged(t *testing.T, rows int) event.SyncCommitted {
	t.Helper()
	return projectortest.AppendStagedRows(t, s.log, s.codec, "locations-a", event.SiteWriteSummary{Referential: "m"}, projectortest.SiteRows(event.SiteCreated, 1, rows))
}

func TestStagedEventsComeBeforeTheirCommitWithItsMetadata(t *testing.T) {
	t.Parallel()
	s := newCluster(t, t.TempDir())
	commit := s.appendStaged(t, 200)
	end := projectortest.Append(t, s.log, s.codec, "locations-a", event.ReferentialOpened{Code: "m"}, commit, event.ReferentialArchived{Code: "m"})
	n := &recorder{}
	s.startInstance(t, n.model()).awaitPosition(t, end)
	type line struct {
		Type string
		Nth  int
	}
	var got []line
	records := n.records[n.batches[0]]
	for _, r := range records {
		got = append(got, line{r.Type, r.StagedNumber})
		if r.Stream != "locations-a" || r.Meta.Reason != projectortest.Reason || (r.Commit != nil) != (r.StagedNumber > 0) {
			t.Errorf("got %+v", r)
		}
	}
	staged := event.SyncStaged{}.EventType()
	want := []line{{event.ReferentialOpened{}.EventType(), 0}, {staged, 1}, {staged, 2}, {staged, 3}, {staged, 4}, {commit.EventType(), 0}, {event.ReferentialArchived{}.EventType(), 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for _, r := range records[1:5] {
		if made, ok := r.Commit.(event.SyncCommitted); !ok || made.SyncID != commit.SyncID || r.Position != records[5].Position || r.Revision != 1 || !r.Time.Equal(records[5].Time) {
			t.Errorf("got %+v, want it in the place of its commit", r)
		}
	}
}

func TestTransactionHoldsAtMost64StagedEvents(t *testing.T) {
	t.Parallel()
	const syncs, rows, atOnce = 7, 1600, 64 // 25 events each
	s := newCluster(t, t.TempDir())
	var end eventstore.Position
	for i := range syncs {
		more := event.ReferentialArchived{Code: fmt.Sprint(i)}
		end = projectortest.Append(t, s.log, s.codec, "locations-a", s.appendStaged(t, rows), more)
	}
	n := &recorder{}
	s.startInstance(t, n.model()).awaitPosition(t, end)
	all := 0
	for _, b := range n.batches {
		records := n.records[b]
		staged := slices.DeleteFunc(slices.Clone(records), func(r projector.Record) bool { return r.StagedNumber == 0 })
		if all += len(staged); len(staged) > atOnce {
			t.Errorf("%d staged events in one transaction, want at most %d", len(staged), atOnce)
		}
		if last := records[len(records)-1]; !last.Meta.EndOfAppend {
			t.Errorf("a transaction ends inside an append, with %s", last.Type)
		}
	}
	if all != syncs*rows/64 || len(n.batches) < 4 {
		t.Errorf("%d staged events in %d transactions, want %d in several", all, len(n.batches), syncs*rows/64)
	}
}

func TestCommitOfMissingStagedEventsStopsTheProjection(t *testing.T) {
	t.Parallel()
	s := newCluster(t, t.TempDir())
	before := projectortest.Append(t, s.log, s.codec, "locations-a", event.ReferentialOpened{Code: "m"}, s.appendStaged(t, 10))
	i := s.startInstance(t, (&recorder{}).model())
	i.awaitPosition(t, before)
	commit := s.appendStaged(t, 10)
	commit.Digest[0]++
	end := projectortest.Append(t, s.log, s.codec, "locations-a", commit)
	var err error
	until(t, "the projection stops", func() bool {
		err = i.AwaitPosition(t.Context(), end)
		return errors.Is(err, projector.ErrDown)
	})
	if !strings.Contains(err.Error(), "does not hold what") {
		t.Errorf("got %v", err)
	}
}

func TestHandlerOfCommitsNeedsHandlerOfStagedEvents(t *testing.T) {
	t.Parallel()
	onCommit := projector.On(func(*projector.Changeset, event.SyncCommitted, projector.Record) {})
	m := projector.Model{Handlers: []projector.EventHandler{onCommit}}
	if staged := (event.SyncStaged{}).EventType(); !slices.Contains(m.Unhandled(), staged) {
		t.Errorf("got %v, want %s among them", m.Unhandled(), staged)
	}
	m.Handlers = []projector.EventHandler{projector.On(func(*projector.Changeset, event.AccountClosed, projector.Record) {})}
	if staged := (event.SyncStaged{}).EventType(); slices.Contains(m.Unhandled(), staged) {
		t.Errorf("got %v without the category of commits", m.Unhandled())
	}
}

// deletingModel is a model in which opening a referential puts a row, a rename changes it, and archiving deletes all rows of
// the account.
func deletingModel() projector.Model {
	t := table.Referentials
	account := func(r projector.Record) string { return eventstore.EntityID(r.Stream) }
	return projector.Model{
		ReadModel:         table.ReadModel{Name: "owned", Version: 1, Tables: []table.Def{t.Def}},
		NeedsPersonalData: true,
		Handlers: []projector.EventHandler{
			projector.OnAnyOther(func(*projector.Changeset, event.Event, projector.Record) {}, "locations"),
			projector.On(func(b *projector.Changeset, e event.ReferentialOpened, r projector.Record) {
				projector.PutRow(b, t, table.Referential{ID: e.Code, Account: account(r)})
			}),
			projector.On(func(b *projector.Changeset, e event.ReferentialRenamed, _ projector.Record) {
				projector.UpdateRow(b, t, e.Code, func(r *table.Referential) { r.Name += string(e.Name) })
			}),
			projector.On(func(b *projector.Changeset, _ event.ReferentialArchived, r projector.Record) {
				projector.DeleteRows(b, t, "account", account(r))
			}),
		},
	}
}

func TestDeleteRowsDeletesEarlierRowsOnly(t *testing.T) {
	t.Parallel()
	opened := func(code string) event.Event { return event.ReferentialOpened{Code: code} }
	renamed := func(code string, name event.Personal) event.Event {
		return event.ReferentialRenamed{Code: code, Name: name}
	}
	archived := event.ReferentialArchived{}
	for what, events := range map[string][]event.Event{
		"rows of before":   {opened("p"), renamed("p", "1"), opened("q"), archived, opened("q"), renamed("q", "2"), renamed("q", "3")},
		"changed ones too": {renamed("old", "x"), archived, opened("q"), opened("p"), archived, opened("q"), renamed("q", "23")},
		"again and again":  {archived, opened("q"), renamed("q", "2"), archived, archived, opened("q"), renamed("q", "23")},
	} {
		apart := make([][]event.Event, len(events))
		for i, e := range events {
			apart[i] = []event.Event{e}
		}
		for how, appends := range map[string][][]event.Event{"in one batch": {events}, "in many": apart} {
			t.Run(what+" "+how, func(t *testing.T) {
				t.Parallel()
				sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
					st := projectortest.Start(t, address, deletingModel())
					st.Append("locations-b", opened("other"))
					st.Append("locations-a", opened("old"))
					for _, events := range appends {
						projectortest.Rows(st, deletingModel().ReadModel, table.Referentials) // so that a batch begins here
						st.Append("locations-a", events...)
					}
					want := []table.Referential{{ID: "other", Account: "b"}, {ID: "q", Account: "a", Name: "23"}}
					if diff := cmp.Diff(want, projectortest.Rows(st, deletingModel().ReadModel, table.Referentials)); diff != "" {
						t.Error(diff)
					}
				})
			})
		}
	}
}
