package changes_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/eventstore/deadlinetest"
	"lieudit/projections/changes"
	"lieudit/projections/projector/projectortest"
	"lieudit/schemas/event"
)

var codec = eventstore.NewCodec(&projectortest.Vault{})

// runNotifier runs a notifier until the test ends.
func runNotifier(t *testing.T, n *changes.Notifier) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// beginning is the checkpoint of empty tables.
func beginning(context.Context) (eventstore.Checkpoint, error) { return eventstore.Checkpoint{}, nil }

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func awaitPosition(t *testing.T, n *changes.Notifier, at eventstore.Position) {
	t.Helper()
	if err := n.AwaitPosition(deadlinetest.Context(t, deadlinetest.DefaultLimit), at); err != nil {
		t.Fatal(err)
	}
}

func openReferential(t *testing.T, log eventstore.Store, account, code string) eventstore.Position {
	t.Helper()
	return projectortest.Append(t, log, codec, "locations-"+account, event.ReferentialOpened{Code: code})
}

func TestLastChangeIsThePositionOfTheLastLocationsEvent(t *testing.T) {
	t.Parallel()
	log := projectortest.OpenJournal(t)
	n := changes.New(log, beginning, discardLog())
	if got := n.LastChange("a"); got != 0 {
		t.Errorf("got %d before anything", got)
	}
	runNotifier(t, n)
	openReferential(t, log, "a", "m")
	last := openReferential(t, log, "a", "n")
	projectortest.Append(t, log, codec, "account-a", event.AccountClosed{})
	other := projectortest.AppendSync(t, log, codec, "locations-b", event.SiteWriteSummary{Referential: "m"}, projectortest.SiteRows(event.SiteCreated, 1, 100))
	awaitPosition(t, n, other)
	if got := []eventstore.Position{n.LastChange("a"), n.LastChange("b"), n.LastChange("c")}; got[0] != last || got[1] != other || got[2] != 0 {
		t.Errorf("got %v, want %d, %d and 0", got, last, other)
	}
}

func TestOfAccountEventsOnlyAnErasureIsAChange(t *testing.T) {
	t.Parallel()
	log := projectortest.OpenJournal(t)
	n := changes.New(log, beginning, discardLog())
	runNotifier(t, n)
	places := openReferential(t, log, "a", "m")
	closed := projectortest.Append(t, log, codec, "account-a", event.AccountClosed{})
	awaitPosition(t, n, closed)
	if got := n.LastChange("a"); got != places {
		t.Errorf("closed: changed at %d, want %d", got, places)
	}
	erased := projectortest.Append(t, log, codec, "account-a", event.AccountErased{})
	awaitPosition(t, n, erased)
	if got := n.LastChange("a"); got != erased {
		t.Errorf("erased: changed at %d, want %d", got, erased)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n := changes.New(projectortest.OpenJournal(t), beginning, discardLog())
	runNotifier(t, n)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := n.AwaitPosition(ctx, 1_000_000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestRunStartsAtTheGivenCheckpoint(t *testing.T) {
	t.Parallel()
	log := projectortest.OpenJournal(t)
	before := openReferential(t, log, "a", "m")
	var checkpoint eventstore.Checkpoint
	for s := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		checkpoint = s.Checkpoint
	}
	var asked atomic.Int32
	n := changes.New(log, func(context.Context) (eventstore.Checkpoint, error) {
		if asked.Add(1) < 3 {
			return eventstore.Checkpoint{}, errors.New("the database is away")
		}
		return checkpoint, nil
	}, discardLog())
	runNotifier(t, n)
	awaitPosition(t, n, before)
	after := openReferential(t, log, "b", "m")
	awaitPosition(t, n, after)
	if a, b := n.LastChange("a"), n.LastChange("b"); a != 0 || b != after || asked.Load() != 3 {
		t.Errorf("got %d and %d after %d questions, want 0 and %d after 3", a, b, asked.Load(), after)
	}
}

// flakyLog is a log whose subscriptions end after one event.
type flakyLog struct {
	eventstore.Store
	subscriptions atomic.Int32
}

func (f *flakyLog) Subscribe(ctx context.Context, after eventstore.Checkpoint, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	f.subscriptions.Add(1)
	return func(yield func(eventstore.Signal, error) bool) {
		for s, err := range f.Store.Subscribe(ctx, after, want) {
			if !yield(s, err) {
				return
			}
			if s.Kind == eventstore.EventAppeared {
				yield(eventstore.Signal{}, &eventstore.CorruptError{})
				return
			}
		}
	}
}

func TestNoChangeIsMissedWhenTheSubscriptionEnds(t *testing.T) {
	t.Parallel()
	log := &flakyLog{Store: projectortest.OpenJournal(t)}
	n := changes.New(log, beginning, discardLog())
	runNotifier(t, n)
	accounts := []string{"a", "b", "c", "d", "e"}
	var last eventstore.Position
	for _, account := range accounts {
		last = openReferential(t, log, account, "m")
	}
	awaitPosition(t, n, last)
	for _, account := range accounts {
		if n.LastChange(account) == 0 {
			t.Errorf("the change of %s was left out", account)
		}
	}
	if got := log.subscriptions.Load(); got < int32(len(accounts)) {
		t.Errorf("the log was read %d times, want one for each event", got)
	}
}

func TestRunEndsWhenTheLogIsClosed(t *testing.T) {
	t.Parallel()
	log := projectortest.OpenJournal(t)
	log.Close()
	if err := changes.New(log, beginning, discardLog()).Run(t.Context()); !errors.Is(err, eventstore.ErrClosed) {
		t.Errorf("got %v, want %v", err, eventstore.ErrClosed)
	}
}

func TestRunRestartsAtTheReadModelsCheckpointOnARestoredLog(t *testing.T) {
	t.Parallel()
	log := projectortest.NewRestorableLog(t)
	kept := openReferential(t, log, "a", "m")
	older := log.Backup(t)
	lost := openReferential(t, log, "b", "m")
	var rebuilt atomic.Pointer[eventstore.Checkpoint]
	var isRestored atomic.Bool
	n := changes.New(log, func(context.Context) (eventstore.Checkpoint, error) {
		if m := rebuilt.Load(); m != nil {
			return *m, nil
		}
		if isRestored.Load() {
			return eventstore.Checkpoint{}, errors.New("the read model holds what is not on the log")
		}
		return eventstore.Checkpoint{}, nil
	}, discardLog())
	runNotifier(t, n)
	awaitPosition(t, n, lost)
	isRestored.Store(true)
	log.Restore(t, older, func() {})
	deadlinetest.WaitUntil(t, deadlinetest.DefaultLimit, "what is not on the log is let go", func() bool { return n.LastChange("b") != lost })
	var checkpoint eventstore.Checkpoint
	for s := range log.ReadAll(t.Context(), eventstore.Checkpoint{}, nil) {
		checkpoint = s.Checkpoint
	}
	rebuilt.Store(&checkpoint)
	after := openReferential(t, log, "a", "n")
	awaitPosition(t, n, after)
	if a, b := n.LastChange("a"), n.LastChange("b"); a != after || b < kept || b > checkpoint.Position {
		t.Errorf("changed at %d and %d, want %d and where it began again, %d", a, b, after, checkpoint.Position)
	}
}
