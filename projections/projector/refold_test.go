package projector_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/projections/inventory"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
	"lieudit/schemas/table/tabletest"
)

// watched is a log that tells of each reading of a stream before it begins, and whose subscriptions can be held back.
type watched struct {
	eventstore.Store
	mu      sync.Mutex
	reads   func(stream string) // nil: nobody is told
	holding chan struct{}       // nil: nothing is held back
}

func (w *watched) tell(reads func(stream string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads = reads
}

func (w *watched) hold(until chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holding = until
}

func (w *watched) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	w.mu.Lock()
	reads := w.reads
	w.mu.Unlock()
	if reads != nil {
		reads(stream)
	}
	return w.Store.ReadStream(ctx, stream, from, dir)
}

func (w *watched) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	w.mu.Lock()
	holding := w.holding
	w.mu.Unlock()
	if holding != nil {
		select {
		case <-holding:
		case <-ctx.Done():
		}
	}
	return w.Store.Subscribe(ctx, after, want)
}

// nth calls f when a stream is read for the n-th time.
func nth(stream string, n int, f func()) func(string) {
	var mu sync.Mutex
	return func(read string) {
		mu.Lock()
		defer mu.Unlock()
		if read != stream {
			return
		}
		if n--; n == 0 {
			f()
		}
	}
}

// A refold of places reads the stream of an account for its corrections, and then for its rows.
const readForRows = 2

func TestCorrectionThatComesWhileAnotherEventStopsTheRefoldIsNotLost(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		log := &watched{Store: s.log}
		s.log = log
		s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		s.raw(t, "account-a", "account.closed.v1", `[]`)
		s.raw(t, "locations-a", sitesChanged, `{`)
		i := s.start(t, inventory.Model(true))
		i.passed(t, s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1)))
		i.stopped(t, table.Places, "a")
		var failed error
		log.tell(nth("account-a", readForRows, func() {
			second := s.append(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
			failed = i.Wait(t.Context(), second)
		}))
		s.append(t, "account-a", event.AccountEventVoided{EventVoided: event.EventVoided{Revision: 0}})
		i.runs(t, table.Places, "a")
		sites, _, err := i.shown(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1"}, names(sites)); diff != "" || err != nil || failed != nil {
			t.Error(err, failed, diff)
		}
	})
}

func TestRefoldThatAnotherInstanceFinishedMeanwhileWritesNothing(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		s := newScene(t, address)
		log := &watched{Store: s.log}
		s.log = log
		s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		bad := s.raw(t, "locations-a", sitesChanged, `{`)
		i := s.start(t, inventory.Model(false))
		i.passed(t, bad)
		i.stopped(t, table.Places, "a")
		done := make(chan error, 1)
		log.tell(nth("locations-a", readForRows, func() { // what the other one leaves: all rows, and the account runs
			done <- i.shelf.Read(t.Context(), table.Places, func(db *table.DB) error {
				return db.Tx(t.Context(), func(tx *table.Tx) error {
					site := table.Site{ID: "a/m/x", Account: "a", Referential: "m", ExternalID: "x", Version: 9, Content: "{}"}
					if err := table.Upsert(t.Context(), tx, table.Sites, []table.Site{site}); err != nil {
						return err
					}
					return table.Upsert(t.Context(), tx, table.AccountStatuses, []table.AccountStatus{{Account: "a", Refolds: 2, Voided: 1}})
				})
			})
		}))
		s.append(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		i.passed(t, s.append(t, "locations-b", event.ReferentialOpened{Code: "m"}))
		if err := i.stopAndRead(t, s, func(now *instance) {
			if sites, _, err := now.shown(t, "a"); err != nil || len(sites) != 1 || sites[0].Version != 9 {
				t.Errorf("got %+v, %v; want the other one's rows", sites, err)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// stopAndRead stops an instance, so that nothing is written any more, and reads with another one.
func (i *instance) stopAndRead(t *testing.T, s *scene, read func(*instance)) error {
	t.Helper()
	i.stop()
	shelf, err := table.OpenShelf(s.address)
	if err != nil {
		return err
	}
	read(&instance{shelf: shelf})
	return shelf.Close()
}

func TestNoAccountIsRefoldedFromALogThatItsCopyIsAheadOf(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		v := &locked{lost: map[string]bool{"a": true}}
		restorable := projectortest.NewRestorable(t)
		log := &watched{Store: restorable}
		s := &scene{address: address, log: log, codec: eventstore.NewCodec(v)}
		s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		older := restorable.Copy(t)
		end := s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
		right := restorable.Copy(t)
		i := s.start(t, inventory.Model(true))
		i.passed(t, end)
		i.stopped(t, table.Places, "a")
		i.stop()
		restorable.Restore(t, older, func() {})
		v.lose("a", false)
		back := make(chan struct{})
		log.hold(back) // this instance owns the copy, and its feed has not met the log yet
		i = s.start(t, inventory.Model(true))
		if err := i.Refold(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		until(t, "the copy is known to be astray", func() bool {
			_, _, err := i.shown(t, "a")
			if err == nil {
				t.Fatal("the account runs with the rows of an older log")
			}
			return errors.Is(err, table.ErrAstray)
		})
		restorable.Restore(t, right, func() {})
		close(back)
		i.passed(t, s.append(t, "locations-b", event.ReferentialOpened{Code: "m"}))
		i.runs(t, table.Places, "a")
		sites, _, err := i.shown(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1"}, names(sites)); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
}

// TestErasureOfAStoppedAccountTakesItsRowsAway: they must not wait for a repair, which may never come.
func TestErasureOfAStoppedAccountTakesItsRowsAway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, s *scene, i *instance){
		"stopped before": func(t *testing.T, s *scene, i *instance) {
			i.passed(t, s.raw(t, "locations-a", sitesChanged, `{`))
			i.stopped(t, table.Places, "a")
			i.passed(t, s.append(t, "account-a", event.AccountErased{}))
		},
		"stopped again later": func(t *testing.T, s *scene, i *instance) {
			i.passed(t, s.raw(t, "locations-a", sitesChanged, `{`))
			s.append(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
			s.raw(t, "locations-a", sitesChanged, `[]`)
			s.append(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
			i.passed(t, s.append(t, "account-a", event.AccountErased{}))
			until(t, "it is stopped again", func() bool { return i.stopped(t, table.Places, "a").Kind == table.AccountUnusable })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tabletest.Each(t, func(t *testing.T, address string) {
				s := newScene(t, address)
				s.append(t, "account-a", event.AccountOpened{Account: "a", Name: "N", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}})
				at := s.append(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
				i := s.start(t, inventory.Model(true))
				i.passed(t, at)
				test(t, s, i)
				err := i.shelf.Read(t.Context(), table.Places, func(db *table.DB) error {
					sites, err := table.Select(t.Context(), db, table.Sites, "where account = 'a'")
					if err == nil && len(sites) > 0 {
						t.Errorf("got %v, want no site of an erased account", names(sites))
					}
					told, outboxErr := table.Select(t.Context(), db, table.Outbox, "where id = 'a/'")
					if outboxErr == nil && len(told) != 1 {
						t.Errorf("got %v in the outbox, want the index told that the sites are gone", told)
					}
					return errors.Join(err, outboxErr)
				})
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestAccountThatCannotBeRefoldedKeepsNoOtherWaiting: a vault that does not answer for one, say.
func TestAccountThatCannotBeRefoldedKeepsNoOtherWaiting(t *testing.T) {
	t.Parallel()
	tabletest.Each(t, func(t *testing.T, address string) {
		v := &silent{}
		s := &scene{address: address, log: projectortest.Journal(t), codec: eventstore.NewCodec(v)}
		var at eventstore.Position
		for _, account := range []string{"a", "b"} {
			s.append(t, "locations-"+account, event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
			at = s.raw(t, "locations-"+account, sitesChanged, `{`)
		}
		i := s.start(t, inventory.Model(true))
		i.passed(t, at)
		v.fall("a")
		for _, account := range []string{"a", "b"} {
			at = s.append(t, "locations-"+account, event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
		}
		i.passed(t, at)
		i.runs(t, table.Places, "b")
		i.stopped(t, table.Places, "a")
		v.fall("")
		i.runs(t, table.Places, "a")
	})
}

// silent is a vault that does not answer for one subject.
type silent struct {
	projectortest.Vault
	mu   sync.Mutex
	away string
}

func (v *silent) fall(subject string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.away = subject
}

func (v *silent) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if subject == v.away {
		return nil, errors.New("no answer")
	}
	return v.Vault.Key(ctx, subject, create)
}
