package projector_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/sqldb"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/projections/locations"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
	"lieudit/schemas/plan"
	"lieudit/schemas/table"
)

// observedLog is a log that calls a function before each read of a stream, and whose subscriptions can be blocked.
type observedLog struct {
	eventstore.Store
	mu      sync.Mutex
	onRead  func(stream string) // nil: reads are not observed
	readErr error               // of all reads of streams, or nil
	blocked chan struct{}       // nil: nothing is held back
}

func (w *observedLog) setOnRead(reads func(stream string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onRead = reads
}

func (w *observedLog) failReads(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readErr = err
}

func (w *observedLog) blockSubscriptions(until chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blocked = until
}

func (w *observedLog) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	w.mu.Lock()
	reads, err := w.onRead, w.readErr
	w.mu.Unlock()
	if err != nil {
		return func(yield func(eventstore.RecordedEvent, error) bool) { yield(eventstore.RecordedEvent{}, err) }
	}
	if reads != nil {
		reads(stream)
	}
	return w.Store.ReadStream(ctx, stream, from, dir)
}

func (w *observedLog) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	w.mu.Lock()
	holding := w.blocked
	w.mu.Unlock()
	if holding != nil {
		select {
		case <-holding:
		case <-ctx.Done():
		}
	}
	return w.Store.Subscribe(ctx, after, want)
}

// onNthRead calls f when a stream is read for the n-th time.
func onNthRead(stream string, n int, f func()) func(string) {
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

// A refold of sites reads the stream of an account for its corrections, and then for its rows.
const rowsRead = 2

func TestCorrectionThatComesWhileAnotherEventStopsTheRefoldIsNotLost(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		log := &observedLog{Store: s.log}
		s.log = log
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		s.appendRaw(t, "account-a", "account.closed.v1", `[]`)
		s.appendRaw(t, "locations-a", sitesChanged, `{`)
		i := s.startInstance(t, locations.Model(true))
		i.awaitPosition(t, s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1)))
		i.requireStopped(t, table.LocationsModel, "a")
		var failed error
		log.setOnRead(onNthRead("account-a", rowsRead, func() {
			second := s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
			failed = i.AwaitPosition(t.Context(), second)
		}))
		s.appendEvents(t, "account-a", event.AccountEventVoided{EventVoided: event.EventVoided{Revision: 0}})
		i.awaitRunning(t, table.LocationsModel, "a")
		sites, _, err := i.accountRows(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1"}, siteNames(sites)); diff != "" || err != nil || failed != nil {
			t.Error(err, failed, diff)
		}
	})
}

// A generation that is filled again meets an event that was once unusable. It does not serve while the account waits for its
// refold: the previous one answers for it.
func TestGenerationServesOnlyWhenItsAccountsAreRefolded(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		log := &observedLog{Store: s.log}
		s.log = log
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"})
		s.appendRaw(t, "locations-a", sitesChanged, `{`)
		s.appendEvents(t, "locations-a", siteRow("m", "x", event.SiteCreated, 1))
		i := s.startInstance(t, locations.Model(true))
		i.awaitPosition(t, s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 1}}))
		i.awaitRunning(t, table.LocationsModel, "a")
		requireRows := func(when string) {
			t.Helper()
			sites, _, err := i.accountRows(t, "a")
			if diff := cmp.Diff([]string{"x v1"}, siteNames(sites)); diff != "" || err != nil {
				t.Error(when, err, diff)
			}
		}

		isRefolding, goOn := make(chan struct{}), make(chan struct{})
		reached, release := sync.OnceFunc(func() { close(isRefolding) }), sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(release)
		log.setOnRead(func(stream string) {
			if stream == "locations-a" {
				reached()
				<-goOn
			}
		})
		before, err := i.registry.ServingGeneration(t.Context(), table.LocationsModel)
		if err == nil {
			_, err = i.Rebuild(t.Context(), before.Model)
		}
		if err != nil {
			t.Fatal(err)
		}
		<-isRefolding
		for range 10 {
			requireRows("while the account is refolded:")
			time.Sleep(100 * time.Millisecond)
		}
		release()
		until(t, "the new generation serves", func() bool {
			now, err := i.registry.ServingGeneration(t.Context(), table.LocationsModel)
			return err == nil && now.Name != before.Name
		})
		requireRows("afterwards:")
	})
}

// A generation does not wait forever for an account that cannot be refolded, even if events keep coming.
func TestGenerationServesInTheEndAlthoughAnAccountCannotBeRefolded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		log := &observedLog{Store: memory.New(time.Now)}
		s := &cluster{address: folder, log: log, codec: eventstore.NewCodec(&projectortest.Vault{})}
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"})
		s.appendRaw(t, "locations-a", sitesChanged, `{`)
		s.appendEvents(t, "locations-b", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		i := s.startInstance(t, locations.Model(true))
		defer i.stop()
		i.awaitPosition(t, s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 1}}))
		i.awaitRunning(t, table.LocationsModel, "a")
		before, err := i.registry.ServingGeneration(t.Context(), table.LocationsModel)
		if err != nil {
			t.Fatal(err)
		}
		log.failReads(errors.New("this part of the log is lost"))
		if _, err := i.Rebuild(t.Context(), table.LocationsModel.Name); err != nil {
			t.Fatal(err)
		}
		serving := func() string {
			now, err := i.registry.ServingGeneration(t.Context(), table.LocationsModel)
			if err != nil {
				t.Fatal(err)
			}
			return now.Name
		}
		const waits = 5 * time.Minute
		begun := time.Now()
		for n := int64(2); time.Since(begun) < waits+10*time.Second; n++ {
			if time.Since(begun) < waits && serving() != before.Name {
				t.Fatalf("it serves after %v without the account", time.Since(begun))
			}
			s.appendEvents(t, "locations-b", siteRow("m", "x", event.SiteUpdated, n))
			time.Sleep(time.Second)
		}
		if serving() == before.Name {
			t.Error("it does not serve after five minutes")
		}
	})
}

// A caller that asks for a refold during another one has repaired something that the running one may already have met.
func TestARefoldThatIsAskedForDuringAnotherIsNotLost(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		v := &lockedVault{lost: map[string]bool{"a": true}}
		log := &observedLog{Store: projectortest.OpenJournal(t)}
		s := &cluster{address: address, log: log, codec: eventstore.NewCodec(v)}
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		i := s.startInstance(t, locations.Model(true))
		i.awaitPosition(t, s.appendEvents(t, "locations-b", event.ReferentialOpened{Code: "m"}))
		i.requireStopped(t, table.LocationsModel, "a")
		met := make(chan error, 1)
		v.onLost("a", func() {
			v.setLost("a", false) // after this refold has met that the key is lost
			met <- i.Refold(t.Context(), "a")
		})
		if err := errors.Join(i.Refold(t.Context(), "a"), <-met); err != nil {
			t.Fatal(err)
		}
		i.awaitRunning(t, table.LocationsModel, "a")
	})
}

// Rows that a refold deletes are still readable in a SQLite file's write-ahead log. If it cannot be emptied at once, that
// happens later.
func TestWhatARefoldDeletesLeavesTheFilesInTheEnd(t *testing.T) {
	t.Parallel()
	const secret = "Pharmacie du Grand Secret"
	folder := t.TempDir()
	s := newCluster(t, folder)
	log := &observedLog{Store: s.log}
	s.log = log
	row := siteRow("m", "x", event.SiteCreated, 1)
	row.Rows[0].Content = `{"content":{"nom":"` + secret + `"}}`
	s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, row)
	s.appendRaw(t, "locations-a", sitesChanged, `{`)
	i := s.startInstance(t, locations.Model(true))
	i.awaitPosition(t, s.appendRaw(t, "locations-a", sitesChanged, `[]`))
	held := make(chan func(), 1)
	log.setOnRead(onNthRead("locations-a", rowsRead, func() { held <- i.holdSnapshot(t) })) // then the rows are written, and deleted at the second event
	s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
	release := <-held
	until(t, "it is stopped again", func() bool { return i.requireStopped(t, table.LocationsModel, "a").Kind == table.AccountUnusable })
	time.Sleep(6 * time.Second) // longer than the database waits for a reader
	if !anyFileHolds(t, folder, secret) {
		t.Error("the files do not hold it while somebody reads: this proves nothing")
	}
	release()
	until(t, "the files no longer hold it", func() bool { return !anyFileHolds(t, folder, secret) })
}

// holdSnapshot holds a snapshot of the rows, as a reader does, until the returned function is called.
func (i *instance) holdSnapshot(t *testing.T) (release func()) {
	t.Helper()
	held, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- i.registry.Read(context.Background(), table.LocationsModel, func(db *sqldb.DB) error {
			rows, err := db.Query(context.Background(), "select position from {checkpoint} union all select position from {checkpoint}")
			if err != nil {
				close(held)
				return err
			}
			defer rows.Close()
			rows.Next()
			close(held)
			<-end
			return nil
		})
	}()
	<-held
	return func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// anyFileHolds reports whether any file of the folder contains a text.
func anyFileHolds(t *testing.T, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte(text)) {
			return true
		}
	}
	return false
}

func TestRefoldThatAnotherInstanceFinishedMeanwhileWritesNothing(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		s := newCluster(t, address)
		log := &observedLog{Store: s.log}
		s.log = log
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		bad := s.appendRaw(t, "locations-a", sitesChanged, `{`)
		i := s.startInstance(t, locations.Model(false))
		i.awaitPosition(t, bad)
		i.requireStopped(t, table.LocationsModel, "a")
		done := make(chan error, 1)
		log.setOnRead(onNthRead("locations-a", rowsRead, func() { // as the other one leaves it: all rows, and the account runs
			done <- i.registry.Read(t.Context(), table.LocationsModel, func(db *sqldb.DB) error {
				return db.RunInTx(t.Context(), func(tx *sqldb.Tx) error {
					site := table.Site{ID: "a/m/x", Account: "a", Referential: "m", ExternalID: "x", Version: 9, Content: "{}"}
					if err := sqldb.Upsert(t.Context(), tx, table.Sites, []table.Site{site}); err != nil {
						return err
					}
					return sqldb.Upsert(t.Context(), tx, table.AccountStatuses, []table.AccountStatus{{Account: "a", RefoldCount: 2, VoidedEvents: 1}})
				})
			})
		}))
		s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		i.awaitPosition(t, s.appendEvents(t, "locations-b", event.ReferentialOpened{Code: "m"}))
		if err := i.stopAndRead(t, s, func(now *instance) {
			if sites, _, err := now.accountRows(t, "a"); err != nil || len(sites) != 1 || sites[0].Version != 9 {
				t.Errorf("got %+v, %v; want the other one's rows", sites, err)
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// stopAndRead stops an instance, so that nothing more is written, and reads with another one.
func (i *instance) stopAndRead(t *testing.T, s *cluster, read func(*instance)) error {
	t.Helper()
	i.stop()
	registry, err := sqldb.OpenRegistry(s.address)
	if err != nil {
		return err
	}
	read(&instance{registry: registry})
	return registry.Close()
}

func TestNoAccountIsRefoldedFromALogBehindItsGeneration(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		v := &lockedVault{lost: map[string]bool{"a": true}}
		restorable := projectortest.NewRestorableLog(t)
		log := &observedLog{Store: restorable}
		s := &cluster{address: address, log: log, codec: eventstore.NewCodec(v)}
		s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
		older := restorable.Backup(t)
		end := s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
		right := restorable.Backup(t)
		i := s.startInstance(t, locations.Model(true))
		i.awaitPosition(t, end)
		i.requireStopped(t, table.LocationsModel, "a")
		i.stop()
		restorable.Restore(t, older, func() {})
		v.setLost("a", false)
		back := make(chan struct{})
		log.blockSubscriptions(back) // this instance owns the generation, and its feed has not read the log yet
		i = s.startInstance(t, locations.Model(true))
		if err := i.Refold(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		until(t, "the generation is known to have diverged", func() bool {
			_, _, err := i.accountRows(t, "a")
			if err == nil {
				t.Fatal("the account runs with the rows of an older log")
			}
			return errors.Is(err, sqldb.ErrDiverged)
		})
		restorable.Restore(t, right, func() {})
		close(back)
		i.awaitPosition(t, s.appendEvents(t, "locations-b", event.ReferentialOpened{Code: "m"}))
		i.awaitRunning(t, table.LocationsModel, "a")
		sites, _, err := i.accountRows(t, "a")
		if diff := cmp.Diff([]string{"x v1", "y v1"}, siteNames(sites)); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
}

// TestErasureOfAStoppedAccountDeletesItsRows: they must not wait for a repair, which may never come.
func TestErasureOfAStoppedAccountDeletesItsRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, s *cluster, i *instance){
		"stopped before": func(t *testing.T, s *cluster, i *instance) {
			i.awaitPosition(t, s.appendRaw(t, "locations-a", sitesChanged, `{`))
			i.requireStopped(t, table.LocationsModel, "a")
			i.awaitPosition(t, s.appendEvents(t, "account-a", event.AccountErased{}))
		},
		"stopped again later": func(t *testing.T, s *cluster, i *instance) {
			i.awaitPosition(t, s.appendRaw(t, "locations-a", sitesChanged, `{`))
			s.appendEvents(t, "locations-a", siteRow("m", "y", event.SiteCreated, 1))
			s.appendRaw(t, "locations-a", sitesChanged, `[]`)
			s.appendEvents(t, "locations-a", event.LocationsEventVoided{EventVoided: event.EventVoided{Revision: 2}})
			i.awaitPosition(t, s.appendEvents(t, "account-a", event.AccountErased{}))
			until(t, "it is stopped again", func() bool { return i.requireStopped(t, table.LocationsModel, "a").Kind == table.AccountUnusable })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
				s := newCluster(t, address)
				s.appendEvents(t, "account-a", event.AccountOpened{Account: "a", Name: "N", Anchor: plan.Date{Year: 2026, Month: 11, Day: 21}})
				at := s.appendEvents(t, "locations-a", event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
				i := s.startInstance(t, locations.Model(true))
				i.awaitPosition(t, at)
				test(t, s, i)
				err := i.registry.Read(t.Context(), table.LocationsModel, func(db *sqldb.DB) error {
					sites, err := sqldb.Select(t.Context(), db, table.Sites, "where account = 'a'")
					if err == nil && len(sites) > 0 {
						t.Errorf("got %v, want no site of an erased account", siteNames(sites))
					}
					entries, outboxErr := sqldb.Select(t.Context(), db, table.Outbox, "where id = 'a/'")
					if outboxErr == nil && len(entries) != 1 {
						t.Errorf("got %v in the outbox, want the entry that makes the index delete the sites", entries)
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

// TestAccountThatCannotBeRefoldedDoesNotDelayOthers: a vault may not answer for one subject alone.
func TestAccountThatCannotBeRefoldedDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		v := &silentVault{}
		s := &cluster{address: address, log: projectortest.OpenJournal(t), codec: eventstore.NewCodec(v)}
		var at eventstore.Position
		for _, account := range []string{"a", "b"} {
			s.appendEvents(t, "locations-"+account, event.ReferentialOpened{Code: "m"}, siteRow("m", "x", event.SiteCreated, 1))
			at = s.appendRaw(t, "locations-"+account, sitesChanged, `{`)
		}
		i := s.startInstance(t, locations.Model(true))
		i.awaitPosition(t, at)
		v.setSilent("a")
		for _, account := range []string{"a", "b"} {
			at = s.appendRaw(t, "locations-"+account, event.LocationsEventVoided{}.EventType(), `{"revision":2}`) // without a reason, which the vault would have to seal
		}
		i.awaitPosition(t, at)
		i.awaitRunning(t, table.LocationsModel, "b")
		i.requireStopped(t, table.LocationsModel, "a")
		v.setSilent("")
		i.awaitRunning(t, table.LocationsModel, "a")
	})
}

// silentVault is a vault that does not answer for one subject.
type silentVault struct {
	projectortest.Vault
	mu            sync.Mutex
	silentSubject string
}

func (v *silentVault) setSilent(subject string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.silentSubject = subject
}

func (v *silentVault) Key(ctx context.Context, subject string, create bool) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if subject == v.silentSubject {
		return nil, errors.New("no answer")
	}
	return v.Vault.Key(ctx, subject, create)
}
