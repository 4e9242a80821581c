package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"lieudit/projections/inventory"
	"lieudit/projections/outbox"
	"lieudit/projections/projector"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

func TestWhatChangedIsToldAsItStands(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.open()
		w.put(row(event.SiteCreated, "p", 1), row(event.SiteCreated, "q", 1), row(event.SiteCreated, "r", 1))
		w.holds("p/1", "q/1", "r/1")
		at := w.put(row(event.SiteUpdated, "p", 2), row(event.SiteDeactivated, "q", 2))
		ctx := deadlinetest.Context(t, deadlinetest.Hang)
		w.until(func() (string, bool) { // the read model first
			rows := projectortest.Rows(w.Stage, table.Places, table.Sites)
			return "the read model never got there", int64(at) <= rows[0].Position
		})
		if err := w.outbox.Wait(ctx, at); err != nil {
			t.Fatal(err)
		}
		w.holds("p/2", "q/2", "r/1")
		if w.index.sites["a/shops/q"].Active {
			t.Error("the index was not told that a site is not active any more")
		}
		w.Append("account-a", event.AccountClosed{}, event.AccountErased{})
		w.holds()
	})
}

func TestWhatChangesWhileItIsToldIsToldAgain(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir())
	var once sync.Once
	told := make(chan struct{})
	w.index.change(func() {
		w.index.before = func(outbox.Batch) { once.Do(func() { <-told }) }
	})
	w.open()
	w.put(row(event.SiteCreated, "p", 1), row(event.SiteCreated, "q", 1))
	w.until(func() (string, bool) {
		w.index.mu.Lock()
		defer w.index.mu.Unlock()
		return "nothing is told", w.index.busy
	})
	w.put(row(event.SiteUpdated, "p", 2))
	w.until(func() (string, bool) {
		rows := projectortest.Rows(w.Stage, table.Places, table.Sites)
		return fmt.Sprint(rows), rows[0].Version == 2
	})
	close(told)
	w.holds("p/2", "q/1")
}

func TestWhatIsRefusedIsSetAside(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := start(t, address)
		w.index.change(func() { w.index.poison = "p07" })
		w.open()
		rows, want := []event.SiteRow{}, []string{}
		for i := range 20 {
			id := fmt.Sprintf("p%02d", i)
			rows = append(rows, row(event.SiteCreated, id, 1))
			if id != "p07" {
				want = append(want, id+"/1")
			}
		}
		at := w.put(rows...)
		w.holds(want...)
		if s, err := w.outbox.State(t.Context()); s.Aside != 1 || err != nil {
			t.Errorf("got %+v, %v", s, err)
		}
		if err := w.outbox.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "1 sites refused") {
			t.Errorf("got %v", err)
		}
		if err := w.outbox.Wait(t.Context(), at); err != nil {
			t.Errorf("what was refused is waited for: %v", err)
		}
		if n := w.log.with("set aside"); n != 1 {
			t.Errorf("got %d log lines", n)
		}
		w.index.change(func() { w.index.poison = "" })
		w.put(row(event.SiteUpdated, "p07", 2))
		w.holds(append(want, "p07/2")...)
		if err := w.outbox.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestIndexThatIsAwayIsToldWhenItIsBack(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir())
	w.index.change(func() { w.index.away = errAway })
	w.open()
	at := w.put(row(event.SiteCreated, "p", 1))
	for version := range int64(5) {
		at = w.put(row(event.SiteUpdated, "p", version+2))
	}
	w.until(func() (string, bool) {
		err := w.outbox.Ready(t.Context())
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "1 sites to be told of: connection refused")
	})
	if err := w.outbox.Wait(t.Context(), at); !errors.Is(err, outbox.ErrDown) {
		t.Errorf("got %v, want %v", err, outbox.ErrDown)
	}
	w.until(func() (string, bool) { n := w.log.with("level=WARN"); return fmt.Sprint(n), n == 1 })
	w.index.change(func() { w.index.away = nil })
	w.holds("p/6")
	w.until(func() (string, bool) { err := w.outbox.Ready(t.Context()); return fmt.Sprint(err), err == nil })
	if n := w.log.with("\n"); n != 2 {
		t.Errorf("got %d log lines, want one that it stopped and one that it goes on", n)
	}
}

func TestWhatWasMissedIsToldAtTheNextStart(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir())
	w.open()
	w.put(row(event.SiteCreated, "p", 1), row(event.SiteCreated, "q", 1))
	w.holds("p/1", "q/1")
	w.Restart(inventory.Model(false)) // without an index for a while
	w.put(row(event.SiteUpdated, "p", 2))
	w.until(func() (string, bool) {
		rows := projectortest.Rows(w.Stage, table.Places, table.Sites)
		return fmt.Sprint(rows), rows[0].Version == 2
	})
	w.Restart(w.model)
	w.holds("p/2", "q/1")
	for name, lose := range map[string]func(){
		"emptied":  func() { clear(w.index.sites); clear(w.index.fills) },
		"another":  func() { clear(w.index.sites); clear(w.index.fills); w.index.told = outbox.Told{} },
		"a backup": func() { delete(w.index.sites, "a/shops/p"); delete(w.index.fills, "a/shops/p") },
	} {
		w.Restart()
		w.index.change(lose)
		w.Restart(w.model)
		w.until(func() (string, bool) { got := w.index.ids(); return fmt.Sprint(name, got), len(got) == 2 })
	}
}

func TestIndexThatIsLostIsFilledAgain(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir())
	w.open()
	w.put(row(event.SiteCreated, "p", 1), row(event.SiteCreated, "q", 1))
	w.holds("p/1", "q/1")
	w.index.change(func() {
		w.index.told, w.index.away = outbox.Told{}, outbox.ErrLost
		clear(w.index.sites)
		clear(w.index.fills)
	})
	w.put(row(event.SiteUpdated, "p", 2))
	w.until(func() (string, bool) { return "nobody noticed", w.log.with("not the one that was filled") > 0 })
	w.index.change(func() { w.index.away = nil })
	w.holds("p/2", "q/1")
}

func TestFreshCopyFillsTheIndexAnew(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir())
	w.open()
	w.put(row(event.SiteCreated, "p", 1))
	w.holds("p/1")
	w.sealed(1)
	w.index.change(func() {
		w.index.sites["b/shops/left"], w.index.fills["b/shops/left"] = table.Site{ID: "b/shops/left", ExternalID: "left"}, "another"
	})
	w.Rebuild(table.Places)
	w.sealed(2)
	w.holds("p/1")
}

func TestOneInstanceTells(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		w := start(t, address)
		others := make([]func(), 2)
		for i := range others {
			shelf, err := table.OpenShelf(address)
			if err != nil {
				t.Fatal(err)
			}
			o := outbox.New(w.index, shelf)
			model := inventory.Model(true)
			model.Beside = o.Run
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- projector.New(w.Log, w.Codec, shelf, model).Run(ctx) }()
			others[i] = sync.OnceFunc(func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				shelf.Close()
			})
			defer others[i]()
		}
		w.open()
		for i := range 30 {
			w.put(row(event.SiteCreated, fmt.Sprint(i), 1))
		}
		w.until(func() (string, bool) { got := w.index.ids(); return fmt.Sprint(got), len(got) == 30 })
		w.Restart() // the one that tells, or another
		w.put(row(event.SiteCreated, "later", 1))
		w.until(func() (string, bool) { got := w.index.ids(); return fmt.Sprint(got), len(got) == 31 })
		if w.index.crowded {
			t.Error("two instances told the index at once")
		}
	})
}

func TestNobodyWaitsForAnIndexThatIsFarBehindOrNotTold(t *testing.T) {
	t.Parallel()
	address := t.TempDir()
	w := start(t, address)
	w.open()
	w.put(row(event.SiteCreated, "p", 1))
	w.holds("p/1")
	w.Restart(inventory.Model(true)) // nobody tells the index
	at := w.put(row(event.SiteUpdated, "p", 2))
	w.until(func() (string, bool) {
		s, err := w.outbox.State(t.Context())
		return fmt.Sprint(s, err), s.Waiting == 1
	})
	wait := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return w.outbox.Wait(ctx, at)
	}
	if err := wait(300 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	if err := wait(20 * time.Second); !errors.Is(err, outbox.ErrDown) {
		t.Errorf("the second who waits in vain: got %v, want %v", err, outbox.ErrDown)
	}
	if err := w.outbox.Wait(t.Context(), at-1); err != nil {
		t.Errorf("what was told is waited for: %v", err)
	}
	rows := []event.SiteRow{}
	for i := range 6000 {
		rows = append(rows, row(event.SiteCreated, fmt.Sprint(i), 1))
	}
	w.Sync(stream, event.SitesWritten{Referential: "shops", Action: "sync", After: len(rows)}, rows)
	w.until(func() (string, bool) {
		s, err := w.outbox.State(t.Context())
		return fmt.Sprint(s, err), s.Waiting == 6001
	})
	if err := w.outbox.Wait(t.Context(), at+1_000_000_000); !errors.Is(err, outbox.ErrDown) {
		t.Errorf("a long queue: got %v, want %v", err, outbox.ErrDown)
	}
	if err := w.outbox.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "6001 sites to be told of") {
		t.Errorf("got %v", err)
	}
}
