package searchindex_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/locations"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/searchindex"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
)

func TestIndexGetsSitesAsTheyAreNow(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := startFixture(t, address)
		w.openReferential()
		w.appendSites(siteRow(event.SiteCreated, "p", 1), siteRow(event.SiteCreated, "q", 1), siteRow(event.SiteCreated, "r", 1))
		w.awaitIndexed("p/1", "q/1", "r/1")
		at := w.appendSites(siteRow(event.SiteUpdated, "p", 2), siteRow(event.SiteDeactivated, "q", 2))
		ctx := deadlinetest.Context(t, deadlinetest.DefaultLimit)
		w.await(func() (string, bool) { // the read model first
			rows := projectortest.Rows(w.Fixture, table.LocationsModel, table.Sites)
			return "the read model never got there", int64(at) <= rows[0].Position
		})
		if err := w.indexer.AwaitPosition(ctx, at); err != nil {
			t.Fatal(err)
		}
		w.awaitIndexed("p/2", "q/2", "r/1")
		if w.index.sites["a/shops/q"].Active {
			t.Error("the index still shows as active a site that is not")
		}
		w.Append("account-a", event.AccountClosed{}, event.AccountErased{})
		w.awaitIndexed()
	})
}

func TestSiteChangedDuringABatchIsIndexedAgain(t *testing.T) {
	t.Parallel()
	w := startFixture(t, t.TempDir())
	var once sync.Once
	changed := make(chan struct{})
	w.index.modify(func() {
		w.index.before = func(searchindex.Batch) { once.Do(func() { <-changed }) }
	})
	w.openReferential()
	w.appendSites(siteRow(event.SiteCreated, "p", 1), siteRow(event.SiteCreated, "q", 1))
	w.await(func() (string, bool) {
		w.index.mu.Lock()
		defer w.index.mu.Unlock()
		return "no batch is being applied", w.index.isBusy
	})
	w.appendSites(siteRow(event.SiteUpdated, "p", 2))
	w.await(func() (string, bool) {
		rows := projectortest.Rows(w.Fixture, table.LocationsModel, table.Sites)
		return fmt.Sprint(rows), rows[0].Version == 2
	})
	close(changed)
	w.awaitIndexed("p/2", "q/1")
}

func TestRefusedSiteIsSetAside(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := startFixture(t, address)
		w.index.modify(func() { w.index.refusedID = "p07" })
		w.openReferential()
		rows, want := []event.SiteRow{}, []string{}
		for i := range 20 {
			id := fmt.Sprintf("p%02d", i)
			rows = append(rows, siteRow(event.SiteCreated, id, 1))
			if id != "p07" {
				want = append(want, id+"/1")
			}
		}
		at := w.appendSites(rows...)
		w.awaitIndexed(want...)
		if s, err := w.indexer.Backlog(t.Context()); s.Refused != 1 || err != nil {
			t.Errorf("got %+v, %v", s, err)
		}
		if err := w.indexer.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "1 sites refused") {
			t.Errorf("got %v", err)
		}
		if err := w.indexer.AwaitPosition(t.Context(), at); err != nil {
			t.Errorf("what was refused is waited for: %v", err)
		}
		if n := w.log.count("set aside"); n != 1 {
			t.Errorf("got %d log lines", n)
		}
		w.index.modify(func() { w.index.refusedID = "" })
		w.appendSites(siteRow(event.SiteUpdated, "p07", 2))
		w.awaitIndexed(append(want, "p07/2")...)
		if err := w.indexer.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestUnreachableIndexIsUpdatedWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := startFixture(t, t.TempDir())
	w.index.modify(func() { w.index.err = errUnreachable })
	w.openReferential()
	at := w.appendSites(siteRow(event.SiteCreated, "p", 1))
	for version := range int64(5) {
		at = w.appendSites(siteRow(event.SiteUpdated, "p", version+2))
	}
	w.await(func() (string, bool) {
		err := w.indexer.Ready(t.Context())
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "1 sites to be told of: connection refused")
	})
	if err := w.indexer.AwaitPosition(t.Context(), at); !errors.Is(err, searchindex.ErrDown) {
		t.Errorf("got %v, want %v", err, searchindex.ErrDown)
	}
	w.await(func() (string, bool) { n := w.log.count("level=WARN"); return fmt.Sprint(n), n == 1 })
	w.index.modify(func() { w.index.err = nil })
	w.awaitIndexed("p/6")
	w.await(func() (string, bool) { err := w.indexer.Ready(t.Context()); return fmt.Sprint(err), err == nil })
	if n := w.log.count("\n"); n != 2 {
		t.Errorf("got %d log lines, want one that it stopped and one that it goes on", n)
	}
}

func TestMissedChangesAreIndexedAtTheNextStart(t *testing.T) {
	t.Parallel()
	w := startFixture(t, t.TempDir())
	w.openReferential()
	w.appendSites(siteRow(event.SiteCreated, "p", 1), siteRow(event.SiteCreated, "q", 1))
	w.awaitIndexed("p/1", "q/1")
	w.Restart(locations.Model(false)) // without an index for a while
	w.appendSites(siteRow(event.SiteUpdated, "p", 2))
	w.await(func() (string, bool) {
		rows := projectortest.Rows(w.Fixture, table.LocationsModel, table.Sites)
		return fmt.Sprint(rows), rows[0].Version == 2
	})
	w.Restart(w.model)
	w.awaitIndexed("p/2", "q/1")
	for name, lose := range map[string]func(){
		"emptied":  func() { clear(w.index.sites); clear(w.index.generations) },
		"another":  func() { clear(w.index.sites); clear(w.index.generations); w.index.state = searchindex.IndexState{} },
		"a backup": func() { delete(w.index.sites, "a/shops/p"); delete(w.index.generations, "a/shops/p") },
	} {
		w.Restart()
		w.index.modify(lose)
		w.Restart(w.model)
		w.await(func() (string, bool) { got := w.index.indexedIDs(); return fmt.Sprint(name, got), len(got) == 2 })
	}
}

func TestIndexThatIsLostIsFilledAgain(t *testing.T) {
	t.Parallel()
	w := startFixture(t, t.TempDir())
	w.openReferential()
	w.appendSites(siteRow(event.SiteCreated, "p", 1), siteRow(event.SiteCreated, "q", 1))
	w.awaitIndexed("p/1", "q/1")
	w.index.modify(func() {
		w.index.state, w.index.err = searchindex.IndexState{}, searchindex.ErrLost
		clear(w.index.sites)
		clear(w.index.generations)
	})
	w.appendSites(siteRow(event.SiteUpdated, "p", 2))
	w.await(func() (string, bool) { return "nobody noticed", w.log.count("not the one that was filled") > 0 })
	w.index.modify(func() { w.index.err = nil })
	w.awaitIndexed("p/2", "q/1")
}

func TestNewGenerationRefillsTheIndex(t *testing.T) {
	t.Parallel()
	w := startFixture(t, t.TempDir())
	w.openReferential()
	w.appendSites(siteRow(event.SiteCreated, "p", 1))
	w.awaitIndexed("p/1")
	w.awaitSaves(1)
	w.index.modify(func() {
		w.index.sites["b/shops/left"], w.index.generations["b/shops/left"] = table.Site{ID: "b/shops/left", ExternalID: "left"}, "another"
	})
	w.Rebuild(table.LocationsModel)
	w.awaitSaves(2)
	w.awaitIndexed("p/1")
}

func TestOneInstanceUpdatesTheIndex(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		w := startFixture(t, address)
		others := make([]func(), 2)
		for i := range others {
			registry, err := sqldb.OpenRegistry(address)
			if err != nil {
				t.Fatal(err)
			}
			o := searchindex.New(w.index, registry, slog.Default())
			model := locations.Model(true)
			model.OwnerTask = o.Run
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- projector.New(w.Log, w.Codec, registry, model).Run(ctx) }()
			others[i] = sync.OnceFunc(func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				registry.Close()
			})
			defer others[i]()
		}
		w.openReferential()
		for i := range 30 {
			w.appendSites(siteRow(event.SiteCreated, fmt.Sprint(i), 1))
		}
		w.await(func() (string, bool) { got := w.index.indexedIDs(); return fmt.Sprint(got), len(got) == 30 })
		w.Restart() // the instance that writes, or another one
		w.appendSites(siteRow(event.SiteCreated, "later", 1))
		w.await(func() (string, bool) { got := w.index.indexedIDs(); return fmt.Sprint(got), len(got) == 31 })
		if w.index.hasOverlapped {
			t.Error("two instances wrote to the index at once")
		}
	})
}

func TestAwaitPositionFailsAtOnceWhenTheIndexIsFarBehindOrStalled(t *testing.T) {
	t.Parallel()
	address := t.TempDir()
	w := startFixture(t, address)
	w.openReferential()
	w.appendSites(siteRow(event.SiteCreated, "p", 1))
	w.awaitIndexed("p/1")
	w.Restart(locations.Model(true)) // without an indexer
	at := w.appendSites(siteRow(event.SiteUpdated, "p", 2))
	w.await(func() (string, bool) {
		s, err := w.indexer.Backlog(t.Context())
		return fmt.Sprint(s, err), s.Pending == 1
	})
	wait := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return w.indexer.AwaitPosition(ctx, at)
	}
	if err := wait(300 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if err := wait(20 * time.Second); !errors.Is(err, searchindex.ErrDown) {
		t.Errorf("the second who waits in vain: got %v, want %v", err, searchindex.ErrDown)
	}
	if err := w.indexer.AwaitPosition(t.Context(), at-1); err != nil {
		t.Errorf("AwaitPosition waits for what was indexed: %v", err)
	}
	rows := []event.SiteRow{}
	for i := range 6000 {
		rows = append(rows, siteRow(event.SiteCreated, fmt.Sprint(i), 1))
	}
	w.Sync(stream, event.SiteWriteSummary{Referential: "shops", Action: "sync", ActiveAfter: len(rows)}, rows)
	w.await(func() (string, bool) {
		s, err := w.indexer.Backlog(t.Context())
		return fmt.Sprint(s, err), s.Pending == 6001
	})
	if err := w.indexer.AwaitPosition(t.Context(), at+1_000_000_000); !errors.Is(err, searchindex.ErrDown) {
		t.Errorf("a long queue: got %v, want %v", err, searchindex.ErrDown)
	}
	if err := w.indexer.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "6001 sites to be told of") {
		t.Errorf("got %v", err)
	}
}
