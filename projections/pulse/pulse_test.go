package pulse_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/eventstore"
	"lieudit/projections/projector/projectortest"
	"lieudit/projections/pulse"
	"lieudit/schemas/deadlinetest"
	"lieudit/schemas/event"
)

var codec = eventstore.NewCodec(&projectortest.Vault{})

// beating is a pulse that runs until the test ends.
func beating(t *testing.T, p *pulse.Pulse) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func wait(t *testing.T, p *pulse.Pulse, at eventstore.Position) {
	t.Helper()
	if err := p.Wait(deadlinetest.Context(t, deadlinetest.Hang), at); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, log eventstore.Store, account, code string) eventstore.Position {
	t.Helper()
	return projectortest.Append(t, log, codec, "locations-"+account, event.ReferentialOpened{Code: code})
}

func TestChangesOfPlacesAreTold(t *testing.T) {
	t.Parallel()
	log := projectortest.Journal(t)
	p := pulse.New(log, quiet())
	if got := p.Changed("a"); got != 0 {
		t.Errorf("got %d before anything", got)
	}
	beating(t, p)
	opened(t, log, "a", "m")
	last := opened(t, log, "a", "n")
	projectortest.Append(t, log, codec, "account-a", event.AccountClosed{})
	other := projectortest.Sync(t, log, codec, "locations-b", event.SitesWritten{Referential: "m"}, projectortest.SiteRows(event.SiteCreated, 1, 100))
	wait(t, p, other)
	if got := []eventstore.Position{p.Changed("a"), p.Changed("b"), p.Changed("c")}; got[0] != last || got[1] != other || got[2] != 0 {
		t.Errorf("got %v, want %d, %d and 0", got, last, other)
	}
}

func TestOfAccountsOnlyAnErasureConcernsPlaces(t *testing.T) {
	t.Parallel()
	log := projectortest.Journal(t)
	p := pulse.New(log, quiet())
	beating(t, p)
	places := opened(t, log, "a", "m")
	closed := projectortest.Append(t, log, codec, "account-a", event.AccountClosed{})
	wait(t, p, closed)
	if got := p.Changed("a"); got != places {
		t.Errorf("closed: changed at %d, want %d", got, places)
	}
	erased := projectortest.Append(t, log, codec, "account-a", event.AccountErased{})
	wait(t, p, erased)
	if got := p.Changed("a"); got != erased {
		t.Errorf("erased: changed at %d, want %d", got, erased)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := pulse.New(projectortest.Journal(t), quiet())
	beating(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.Wait(ctx, 1_000_000); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestItBeginsWhereItIsTold(t *testing.T) {
	t.Parallel()
	log := projectortest.Journal(t)
	before := opened(t, log, "a", "m")
	var mark eventstore.Mark
	for s := range log.ReadAll(t.Context(), eventstore.Mark{}, nil) {
		mark = s.Mark
	}
	p := pulse.New(log, quiet())
	var asked atomic.Int32
	p.From = func(context.Context) (eventstore.Mark, error) {
		if asked.Add(1) < 3 {
			return eventstore.Mark{}, errors.New("the database is away")
		}
		return mark, nil
	}
	beating(t, p)
	wait(t, p, before)
	after := opened(t, log, "b", "m")
	wait(t, p, after)
	if a, b := p.Changed("a"), p.Changed("b"); a != 0 || b != after || asked.Load() != 3 {
		t.Errorf("got %d and %d after %d questions, want 0 and %d after 3", a, b, asked.Load(), after)
	}
}

// fickle is a log whose subscriptions end after one event.
type fickle struct {
	eventstore.Store
	begun atomic.Int32
}

func (f *fickle) Subscribe(ctx context.Context, after eventstore.Mark, want eventstore.Filter) iter.Seq2[eventstore.Signal, error] {
	f.begun.Add(1)
	return func(yield func(eventstore.Signal, error) bool) {
		for s, err := range f.Store.Subscribe(ctx, after, want) {
			if !yield(s, err) {
				return
			}
			if s.Kind == eventstore.Event {
				yield(eventstore.Signal{}, &eventstore.CorruptError{})
				return
			}
		}
	}
}

func TestNothingIsLeftOutWhenTheLogEndsTheReading(t *testing.T) {
	t.Parallel()
	log := &fickle{Store: projectortest.Journal(t)}
	p := pulse.New(log, quiet())
	beating(t, p)
	accounts := []string{"a", "b", "c", "d", "e"}
	var last eventstore.Position
	for _, account := range accounts {
		last = opened(t, log, account, "m")
	}
	wait(t, p, last)
	for _, account := range accounts {
		if p.Changed(account) == 0 {
			t.Errorf("the change of %s was left out", account)
		}
	}
	if got := log.begun.Load(); got < int32(len(accounts)) {
		t.Errorf("the log was read %d times, want one for each event", got)
	}
}

func TestAClosedLogEndsIt(t *testing.T) {
	t.Parallel()
	log := projectortest.Journal(t)
	log.Close()
	if err := pulse.New(log, quiet()).Run(t.Context()); !errors.Is(err, eventstore.ErrClosed) {
		t.Errorf("got %v, want %v", err, eventstore.ErrClosed)
	}
}
