package faults_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/bench/simulation/faults"
	"lieudit/eventstore"
	"lieudit/eventstore/memory"
	"lieudit/eventstore/storetest"
)

func TestALogThatNothingStrikesKeepsTheContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) eventstore.Store {
		return faults.NewLog(memory.New(time.Now), faults.CoreLog, faults.NewInjector(1))
	}, storetest.Options{})
}

// struckLog is a log with an event on it, and one instance's view of it.
type struckLog struct {
	*faults.Log
	inner    *memory.Log
	injector *faults.Injector
}

func newStruckLog(t *testing.T) struckLog {
	t.Helper()
	l := struckLog{inner: memory.New(time.Now), injector: faults.NewInjector(1)}
	l.Log = faults.NewLog(l.inner, faults.CoreLog, l.injector)
	l.ForgetIDs = l.inner.ForgetIDs
	if _, err := l.inner.Append(t.Context(), "a-1", eventstore.NoStream, []eventstore.ProposedEvent{newEvent(), newEvent(), newEvent(), newEvent(), newEvent()}); err != nil {
		t.Fatal(err)
	}
	return l
}

func newEvent() eventstore.ProposedEvent {
	return eventstore.ProposedEvent{ID: uuid.New(), Type: "a.happened.v1", Data: []byte("{}")}
}

// patience is how long each call of observe may take.
const patience = 10 * time.Second

// observe makes each call once and describes what is wrong.
func (l struckLog) observe(t *testing.T) (seen []string) {
	t.Helper()
	for _, call := range []struct {
		name string
		do   func(context.Context) string
	}{{"append", l.observeAppend}, {"read", l.observeRead}, {"read of all", l.observeReadAll}, {"subscription", l.observeSubscription}} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		began := time.Now()
		what := call.do(ctx)
		cancel()
		if took := time.Since(began); took >= patience {
			what += " never"
		} else if took > 0 {
			what += " late"
		}
		if what != "" {
			seen = append(seen, call.name+":"+what)
		}
	}
	if err := l.Health(); err != nil {
		seen = append(seen, "health:"+describe(err))
	}
	return seen
}

// observeAppend appends an event and, if the outcome is unknown, sends it once more.
func (l struckLog) observeAppend(ctx context.Context) (what string) {
	stream, event := "b-"+uuid.NewString(), []eventstore.ProposedEvent{newEvent()}
	_, err := l.Append(ctx, stream, eventstore.Any, event)
	what = describe(err) + l.describeAdded(stream, err)
	if errors.Is(err, eventstore.ErrUnknown) {
		_, err = l.Append(ctx, stream, eventstore.Any, event)
		what += ", again" + describe(err) + l.describeAdded(stream, err)
	}
	return what
}

// describeAdded describes how many events a stream holds, unless it is the one event of an append without an error.
func (l struckLog) describeAdded(stream string, err error) string {
	n := 0
	for range l.inner.ReadStream(context.Background(), stream, 0, eventstore.Forward) {
		n++
	}
	switch {
	case n == 0:
		return " lost"
	case n > 1:
		return " twice"
	case err != nil:
		return " made"
	}
	return ""
}

func (l struckLog) observeRead(ctx context.Context) string {
	n := 0
	for e, err := range l.ReadStream(ctx, "a-1", 0, eventstore.Forward) {
		if err != nil {
			return describe(err)
		}
		if n++; e.Type != "a.happened.v1" {
			return " other type"
		}
	}
	if n != 5 {
		return " gap"
	}
	return ""
}

func (l struckLog) observeReadAll(ctx context.Context) string {
	return describeSignals(l.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{"a"}))
}

func (l struckLog) observeSubscription(ctx context.Context) string {
	return describeSignals(l.Subscribe(ctx, eventstore.Checkpoint{}, eventstore.Filter{"a"}))
}

// describeSignals reads up to the first CaughtUp.
func describeSignals(signals iter.Seq2[eventstore.Signal, error]) string {
	n := 0
	for s, err := range signals {
		switch {
		case err != nil:
			return describe(err)
		case s.Kind == eventstore.EventAppeared && s.Event.Type != "a.happened.v1":
			return " other type"
		case s.Kind == eventstore.EventAppeared:
			n++
		case s.Kind == eventstore.CaughtUp && n == 5:
			return ""
		case s.Kind == eventstore.CaughtUp:
			return " gap"
		}
	}
	return " ends without an error"
}

// describe returns an error in a word.
func describe(err error) string {
	_, isStall := errors.AsType[*eventstore.StallError](err)
	_, isCorrupt := errors.AsType[*eventstore.CorruptError](err)
	switch {
	case err == nil:
		return ""
	case isStall:
		return " stalls"
	case isCorrupt:
		return " corrupt"
	case errors.Is(err, eventstore.ErrUnknown):
		return " unknown"
	case errors.Is(err, eventstore.ErrUnavailable):
		return " unavailable"
	case errors.Is(err, context.DeadlineExceeded):
		return " ends"
	}
	return " " + err.Error()
}

// logFaults lists what differs in a view of a log while a fault strikes everything that it may, for 3 s.
var logFaults = map[faults.Kind][]string{
	faults.AppendRefused:      {"append: unavailable lost"},
	faults.AppendUnknownMade:  {"append: unknown made, again unknown made"},
	faults.AppendUnknownLost:  {"append: unknown lost, again unknown lost"},
	faults.AppendLate:         {"append: late"},
	faults.RepeatDropped:      {"append: unknown made, again unknown made late"},
	faults.IDsForgotten:       {"append: unknown made, again unknown twice"},
	faults.ReadCut:            {"read: unavailable", "read of all: unavailable"},
	faults.ReadStalled:        {"read: late"},
	faults.SubscriptionBehind: {"subscription: late"},
	faults.CaughtUpRepeated:   nil, // see TestCaughtUpIsRepeatedOnce
	faults.SubscriptionEnds:   {"subscription: corrupt"},
	faults.TypeUnknown:        {"read: other type", "read of all: other type", "subscription: other type"},
	faults.LogSilent:          {"append: late"}, // and whatever comes before it is over
	faults.LogUnavailable:     {"append: unavailable lost", "read: unavailable", "read of all: unavailable", "subscription: late"},
	faults.DiesBeforeAppend:   {"append: unknown lost, again unknown lost never", "read: ends never", "read of all: ends never", "subscription: ends never"},
	faults.DiesAfterAppend:    {"append: unknown made, again unknown made never", "read: ends never", "read of all: ends never", "subscription: ends never"},
}

func TestAFaultOfALogDoesWhatItSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, d := range faults.Kinds() {
		if !slices.Contains(d.Parts, faults.CoreLog) {
			continue
		}
		t.Run(string(d.Kind), func(t *testing.T) {
			t.Parallel()
			want, isKnown := logFaults[d.Kind]
			if !isKnown {
				t.Fatal("no line of the table says what it does")
			}
			synctest.Test(t, func(t *testing.T) {
				l := newStruckLog(t)
				mend := l.injector.Strike(faults.Fault{Kind: d.Kind, Part: faults.CoreLog, Of: map[bool]string{true: "a.happened.v1"}[d.Kind == faults.TypeUnknown]})
				timer := time.AfterFunc(3*time.Second, mend)
				if got := l.observe(t); !slices.Equal(got, want) {
					t.Errorf("while it strikes:\n got %q\nwant %q", got, want)
				}
				timer.Stop()
				mend()
				if got := l.observe(t); len(got) > 0 && !strings.HasPrefix(string(d.Kind), "instance dies") {
					t.Errorf("after it: %q", got)
				}
			})
		})
	}
}

func TestAFaultStrikesItsPartAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newStruckLog(t)
		for _, d := range faults.Kinds() {
			l.injector.Strike(faults.Fault{Kind: d.Kind, Part: faults.UsageLog})
		}
		if got := l.observe(t); len(got) > 0 {
			t.Errorf("the core log is struck by faults of the usage log: %q", got)
		}
	})
}

func TestASilentLogIsAStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newStruckLog(t)
		mend := l.injector.Strike(faults.Fault{Kind: faults.LogSilent, Part: faults.CoreLog})
		time.Sleep(2 * time.Second)
		if stall, ok := errors.AsType[*eventstore.StallError](l.Health()); !ok || stall.Duration != 2*time.Second {
			t.Errorf("health is %v, want a stall of two seconds", l.Health())
		}
		mend()
		if err := l.Health(); err != nil {
			t.Errorf("health is %v after it", err)
		}
	})
}

func TestCaughtUpIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	l := newStruckLog(t)
	defer l.injector.Strike(faults.Fault{Kind: faults.CaughtUpRepeated, Part: faults.CoreLog})()
	var places []eventstore.Checkpoint
	for s, err := range l.Subscribe(t.Context(), eventstore.Checkpoint{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Kind == eventstore.CaughtUp {
			if places = append(places, s.Checkpoint); len(places) == 2 {
				break
			}
		}
	}
	if places[0] != places[1] {
		t.Errorf("the two are at %v", places)
	}
}

func TestAFaultStrikesFromACallOn(t *testing.T) {
	t.Parallel()
	l := newStruckLog(t)
	defer l.injector.Strike(faults.Fault{Kind: faults.AppendRefused, Part: faults.CoreLog, Of: "sync", Skip: 2})()
	var got []bool
	for _, stream := range []string{"sync-1", "account-1", "sync-1", "sync-1", "account-1", "sync-2"} {
		_, err := l.Append(t.Context(), stream, eventstore.Any, []eventstore.ProposedEvent{newEvent()})
		got = append(got, err == nil)
	}
	if want := []bool{true, true, true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("made: %v, want %v", got, want)
	}
}

func TestALateAppendIsMadeAlthoughItsCallerGaveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newStruckLog(t)
		defer l.injector.Strike(faults.Fault{Kind: faults.AppendLate, Part: faults.CoreLog})()
		ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
		defer cancel()
		if _, err := l.Append(ctx, "b-1", eventstore.Any, []eventstore.ProposedEvent{newEvent()}); !errors.Is(err, eventstore.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want it unknown and the context's", err)
		}
		before := l.inner.LastPosition()
		time.Sleep(3 * time.Second)
		if l.inner.LastPosition() == before {
			t.Error("it was not added")
		}
	})
}

func TestUnknownAppendsSettleBySendingThemAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newStruckLog(t)
		for _, kind := range []faults.Kind{faults.AppendUnknownMade, faults.AppendUnknownLost, faults.AppendLate, faults.RepeatDropped} {
			defer l.injector.Strike(faults.Fault{Kind: kind, Part: faults.CoreLog, Rate: 0.3})()
		}
		for n := range 200 {
			expected := eventstore.Revision(n - 1)
			if n%2 == 0 {
				expected = eventstore.Any
			}
			made, err := eventstore.AppendUntilKnown(t.Context(), l, "b-1", expected, []eventstore.ProposedEvent{newEvent()}, eventstore.Resend{})
			if err != nil || made.Revision != eventstore.Revision(n) {
				t.Fatalf("append %d: %+v, %v", n, made, err)
			}
		}
	})
}

func TestNoCallOfADeadInstanceTakesEffect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newStruckLog(t)
		waiting := make(chan error, 1)
		mend := l.injector.Strike(faults.Fault{Kind: faults.LogSilent, Part: faults.CoreLog})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			_, err := l.Append(ctx, "b-1", eventstore.Any, []eventstore.ProposedEvent{newEvent()})
			waiting <- err
		}()
		synctest.Wait()
		before := l.inner.LastPosition()
		l.injector.Kill()
		mend()
		if err := <-waiting; !errors.Is(err, eventstore.ErrUnknown) {
			t.Errorf("an append under way: %v", err)
		}
		if _, err := l.Append(context.Background(), "b-1", eventstore.Any, []eventstore.ProposedEvent{newEvent()}); err == nil {
			t.Error("an append that waits for ever succeeds")
		}
		if l.inner.LastPosition() != before {
			t.Error("a dead instance has appended")
		}
	})
}

func TestWhoeverKillsIsToldOfTheDeath(t *testing.T) {
	t.Parallel()
	l := newStruckLog(t)
	told := make(chan bool)
	l.injector.OnDeath = func() { told <- true }
	l.injector.Strike(faults.Fault{Kind: faults.DiesAfterAppend, Part: faults.CoreLog, Of: "b"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-told
		cancel() // as the end of an instance's process does
	}()
	if _, err := l.Append(ctx, "b-1", eventstore.Any, []eventstore.ProposedEvent{newEvent()}); !errors.Is(err, eventstore.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestCloseEndsACallThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newStruckLog(t)
		defer l.injector.Strike(faults.Fault{Kind: faults.LogSilent, Part: faults.CoreLog})()
		time.AfterFunc(time.Second, func() { l.Close() })
		if _, err := l.Append(t.Context(), "b-1", eventstore.Any, []eventstore.ProposedEvent{newEvent()}); !errors.Is(err, eventstore.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCallsTakeTurnsThatTheSeedDraws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, longest = 200, 2 * time.Millisecond
		draw := func(seed uint64) (waits []time.Duration) {
			injector := faults.NewInjector(seed)
			injector.LongestTurn = longest
			l := faults.NewLog(memory.New(time.Now), faults.CoreLog, injector)
			for range calls {
				began := time.Now()
				if _, err := l.Identity(t.Context()); err != nil {
					t.Fatal(err)
				}
				waits = append(waits, time.Since(began))
			}
			return waits
		}
		first := draw(1)
		if !slices.Equal(first, draw(1)) || slices.Equal(first, draw(2)) {
			t.Error("the waits do not follow from the seed")
		}
		waited := 0
		for _, wait := range first {
			if wait > 0 {
				waited++
			}
			if wait >= longest {
				t.Errorf("a call waited for %v", wait)
			}
		}
		if waited < calls/4 || waited > calls*3/4 {
			t.Errorf("%d of %d calls waited, want half of them", waited, calls)
		}
	})
}
