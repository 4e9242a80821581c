package vault_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/sqldb/sqldbtest"
	"lieudit/eventstore/vault"
)

// pausedLog is a log whose reads of everything, and whose identity, wait while it is paused.
type pausedLog struct {
	eventstore.Store
	mu      sync.Mutex
	resume  chan struct{} // nil while it is not paused
	waiting chan struct{} // closed when somebody waits
}

// pause makes reads wait until resume is called. waiting is closed once somebody waits.
func (l *pausedLog) pause() (waiting <-chan struct{}, resume func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan struct{})
	l.resume, l.waiting = c, make(chan struct{})
	return l.waiting, sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.resume = nil
		close(c)
	})
}

func (l *pausedLog) wait(ctx context.Context) error {
	l.mu.Lock()
	c := l.resume
	if l.waiting != nil {
		close(l.waiting)
		l.waiting = nil
	}
	l.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *pausedLog) Identity(ctx context.Context) (uuid.UUID, error) {
	if err := l.wait(ctx); err != nil {
		return uuid.Nil, err
	}
	return l.Store.Identity(ctx)
}

func (l *pausedLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	return func(yield func(eventstore.Signal, error) bool) {
		if err := l.wait(ctx); err != nil {
			yield(eventstore.Signal{}, err)
			return
		}
		for s, err := range l.Store.ReadAll(ctx, after, want) {
			if !yield(s, err) {
				return
			}
		}
	}
}

// TestNoKeyIsMadeBeforeAReplacedVaultIsChecked: what is sealed with a key in another log's vault is lost when the right vault is back.
func TestNoKeyIsMadeBeforeAReplacedVaultIsChecked(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		log := &pausedLog{Store: f.log}
		f.log = log
		i := f.startChecked(t)
		i.openAccounts(t, "a")
		f.replaceWithOtherLogs(t)
		before := f.countKeys(t)
		waiting, resume := log.pause()
		defer resume()
		checked := make(chan error, 1)
		go func() { checked <- i.Check(t.Context()) }()
		<-waiting
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := i.Key(ctx, "new", true); err == nil {
			t.Error("a key was made while the vault is being checked")
		}
		if _, err := i.Key(ctx, "b", false); err == nil || errors.Is(err, eventstore.ErrUnreadable) {
			t.Errorf("the key of another log's account: %v, want that it cannot be told yet", err)
		}
		if got := f.countKeys(t); got != before {
			t.Errorf("the other log's vault holds %d keys, want its %d", got, before)
		}
		resume()
		var wrong *vault.WrongError
		if err := <-checked; !errors.As(err, &wrong) {
			t.Errorf("the check ends with %v, want why the vault is wrong", err)
		}
		i.requireStopped(t, "a")
	})
}

// cutLog is a log whose reads of everything are cut short while isCut.
type cutLog struct {
	eventstore.Store
	isCut atomic.Bool
}

func (l *cutLog) ReadAll(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	if !l.isCut.Load() {
		return l.Store.ReadAll(ctx, after, want)
	}
	return func(yield func(eventstore.Signal, error) bool) {
		yield(eventstore.Signal{}, eventstore.ErrUnavailable)
	}
}

// TestAVaultIsNotUsedBeforeItIsComparedToTheEnd: an older copy of the vault is in its place, and the log cannot be read to the end when it is
// compared. What is sealed with a key that is made in the copy is lost when the newest one is back.
func TestAVaultIsNotUsedBeforeItIsComparedToTheEnd(t *testing.T) {
	t.Parallel()
	sqldbtest.EachDatabase(t, func(t *testing.T, address string) {
		f := newFixture(t, address)
		log := &cutLog{Store: f.log}
		f.log = log
		running := f.startChecked(t)
		running.openAccounts(t, "a")
		restore := f.backUp(t)
		running.openAccounts(t, "b")
		restore(f)
		before := f.countKeys(t)
		log.isCut.Store(true)
		started := f.startUnchecked(t)
		for name, i := range map[string]*instance{"running": running, "started": started} {
			if err := i.Check(t.Context()); !errors.Is(err, eventstore.ErrUnavailable) {
				t.Fatalf("%s: the check ends with %v, want that the log cannot be read", name, err)
			}
			if err := i.Ready(t.Context()); err == nil {
				t.Errorf("%s: ready on a vault that was not compared", name)
			}
			if _, err := i.Key(t.Context(), "new", true); err == nil {
				t.Errorf("%s: a key was made in a vault that was not compared", name)
			}
		}
		if got := f.countKeys(t); got != before {
			t.Errorf("the older copy holds %d keys, want its %d", got, before)
		}
		log.isCut.Store(false)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		var wrong *vault.WrongError
		if err := started.Run(ctx); !errors.As(err, &wrong) { // it probes at once
			t.Errorf("the first probe ends with %v, want why the vault is wrong", err)
		}
	})
}

// TestManyCallsOnAReplacedVaultAreOneCheck: a check may take long, and every account calls.
func TestManyCallsOnAReplacedVaultAreOneCheck(t *testing.T) {
	t.Parallel()
	f := newFixture(t, t.TempDir())
	log := &countedLog{Store: f.log}
	f.log = log
	i := f.startChecked(t)
	i.openAccounts(t, "a")
	putBack := f.backUp(t)
	putBack(f) // the same keys in another file
	before := log.identities
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			if _, err := i.Key(t.Context(), "new", true); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if got := log.identities - before; got != 1 {
		t.Errorf("%d checks, want 1", got)
	}
}

// countedLog counts the checks: each asks for the identity of the log, one at a time.
type countedLog struct {
	eventstore.Store
	identities int
}

func (l *countedLog) Identity(ctx context.Context) (uuid.UUID, error) {
	l.identities++
	time.Sleep(20 * time.Millisecond)
	return l.Store.Identity(ctx)
}

// TestALongCheckKeepsTheLease: the vault must not be rewrapped under an instance that checks it.
func TestALongCheckKeepsTheLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	log := &pausedLog{Store: f.log}
	f.log = log
	i := f.startChecked(t)
	i.openAccounts(t, "a")
	waiting, resume := log.pause()
	defer resume()
	compared := make(chan error, 1)
	go func() { compared <- i.Check(t.Context()) }()
	<-waiting
	f.execStatements(t, "update {lease} set until = 0") // as if the check had taken longer than a lease
	time.Sleep(leaseTime / 2)
	if _, err := vault.Rewrap(t.Context(), f.address, nil, masterKey(1)); !errors.Is(err, vault.ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	resume()
	if err := <-compared; err != nil {
		t.Error(err)
	}
}

// TestADestroyedKeyDoesNotAskForAMasterKey: nothing was wrapped with it.
func TestADestroyedKeyDoesNotAskForAMasterKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, t.TempDir())
	i := f.startChecked(t)
	i.openAccounts(t, "a", "b")
	i.close()
	f.master = masterKey(1)
	i = f.startChecked(t)
	if err := i.DestroyKey(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	i.close()
	f.master = nil
	f.startChecked(t).requireReadable(t, "b")
}

// TestACopyPutBackDuringAComparisonIsNotTakenForCompared: its keys are fewer than those that were found.
func TestACopyPutBackDuringAComparisonIsNotTakenForCompared(t *testing.T) {
	t.Parallel()
	f := newFixture(t, sqldbtest.NewPostgresDatabase(t))
	log := &pausedLog{Store: f.log}
	f.log = log
	i := f.startChecked(t)
	i.openAccounts(t, "a")
	putBack := f.backUp(t)
	i.openAccounts(t, "b")
	waiting, resume := log.pause()
	defer resume()
	compared := make(chan error, 1)
	go func() { compared <- i.CompareNewEvents(t.Context()) }()
	<-waiting // it has read the binding
	putBack(f)
	f.execStatements(t, "insert into {data_keys} (subject, key, created, destroyed) select 'b', key, created, destroyed from {data_keys} where subject = 'a'")
	resume()
	if err := <-compared; err == nil {
		t.Error("the copy counts as compared")
	}
	db := f.openDatabase(t)
	defer db.Close()
	var position int64
	if err := db.QueryRow(t.Context(), "select position from {binding}").Scan(&position); err != nil || position != 0 {
		t.Errorf("compared up to %d, %v", position, err)
	}
}
