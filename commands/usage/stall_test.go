package usage_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/commands/usage"
	"lieudit/eventstore"
	"lieudit/eventstore/waitlimit"
	"lieudit/schemas/plan"
	"lieudit/schemas/usagefold"
)

// silentStore is a log that falls silent, as a real EventStoreDB does: calls during a silence are answered after it. It can be
// unavailable as well.
type silentStore struct {
	eventstore.Store
	appendsInSilence bool // an append in a silence is made at once, and only its answer is late

	mu            sync.Mutex
	silenceEnded  chan struct{} // closed when the silence ends; nil: there is none
	isUnavailable bool
	lag           time.Duration // of every answer
}

func (s *silentStore) beginSilence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silenceEnded = make(chan struct{})
}

func (s *silentStore) endSilence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.silenceEnded)
	s.silenceEnded = nil
}

func (s *silentStore) setUnavailable(isUnavailable bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isUnavailable = isUnavailable
}

func (s *silentStore) setLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
}

func (s *silentStore) awaitAnswer(ctx context.Context) error {
	s.mu.Lock()
	silenceEnded, isUnavailable, lag := s.silenceEnded, s.isUnavailable, s.lag
	s.mu.Unlock()
	time.Sleep(lag)
	if isUnavailable {
		return eventstore.ErrUnavailable
	}
	if silenceEnded == nil {
		return nil
	}
	select {
	case <-silenceEnded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *silentStore) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.ProposedEvent) (done eventstore.AppendResult, err error) {
	if s.appendsInSilence {
		done, err = s.Store.Append(ctx, stream, expected, events)
	}
	if waitErr := s.awaitAnswer(ctx); waitErr != nil {
		return done, waitErr
	}
	if !s.appendsInSilence {
		return s.Store.Append(ctx, stream, expected, events)
	}
	return done, err
}

func (s *silentStore) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		if err := s.awaitAnswer(ctx); err != nil {
			yield(eventstore.RecordedEvent{}, err)
			return
		}
		s.Store.ReadStream(ctx, stream, from, dir)(yield)
	}
}

// simulation is a meter over a log that can be slow, in the time of a synctest bubble, in which waiting costs nothing.
type simulation struct {
	*testing.T
	*usage.Meter
	log     *silentStore
	limiter *waitlimit.Limiter
	wall    *fakeClock
	begun   time.Time
	work    sync.WaitGroup
}

func runSimulation(t *testing.T, appendsInSilence bool, maxWaiting int, run func(*simulation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newFakeClock(parseTime(t, "2026-03-01T12:00:00+01:00"))
		log := &silentStore{Store: openLogWithClock(t, c), appendsInSilence: appendsInSilence}
		quotas := &fakeQuotas{caps: map[string]int64{"a": 100_000, "b": 100_000, "cold": 100_000}}
		limiter := waitlimit.New(maxWaiting)
		m := startLimitedMeter(t, log, log.Store, quotas, limiter, c.now)
		mustCount(t, m, "a", 100_000)
		mustCount(t, m, "b", 100_000)
		s := &simulation{T: t, Meter: m, log: log, limiter: limiter, wall: c, begun: time.Now()}
		run(s)
		s.work.Wait()
	})
}

// requestOutcome is the answer to a request, and when it came.
type requestOutcome struct {
	arrivedAt, answeredAt time.Duration // since the test began
	err                   error
}

// startRequest counts one request of an account in the background and notes its outcome.
func (s *simulation) startRequest(ctx context.Context, account string, to *requestOutcome) {
	to.arrivedAt = time.Since(s.begun)
	s.work.Go(func() {
		_, to.err = countRequest(ctx, s.Meter, s.limiter.NewWait(account), grantOf(account, 100_000), "GET /me")
		to.answeredAt = time.Since(s.begun)
	})
}

// readBilled returns what the log says was counted, once the late refunds are on it.
func (s *simulation) readBilled(account string) int64 {
	s.Helper()
	time.Sleep(time.Second) // in a bubble: until nothing runs any more
	synctest.Wait()
	f, _ := foldStream(s.T, s.log.Store, usagefold.StreamName(account, plan.PeriodAt(anchor, s.wall.now()).First))
	spent, err := s.ReadQuotaUsage(s.Context(), grantOf(account, 100_000))
	if err != nil || spent.Used != f.Lines.Total() {
		s.Errorf("%s: the instance says %d, %v, the log %d", account, spent.Used, err, f.Lines.Total())
	}
	return f.Lines.Total()
}

func TestASilenceOfTwoAndAHalfSecondsRefusesNoRequest(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprintf("done at once %v", made), func(t *testing.T) {
			t.Parallel()
			runSimulation(t, made, waitlimit.MaxRequests, func(s *simulation) {
				s.log.beginSilence()
				var all [120]requestOutcome
				for i := range all {
					s.startRequest(s.Context(), []string{"a", "b", "cold"}[i%3], &all[i])
					time.Sleep(2500 * time.Millisecond / time.Duration(len(all)))
				}
				s.log.endSilence()
				s.work.Wait()
				for i, r := range all {
					if r.err != nil {
						s.Errorf("request %d, come at %v: %v at %v", i, r.arrivedAt, r.err, r.answeredAt)
					}
				}
				if got := [3]int64{s.readBilled("a"), s.readBilled("b"), s.readBilled("cold")}; got != [3]int64{41, 41, 40} {
					s.Errorf("billed %v, want 40 each and one more of two", got)
				}
			})
		})
	}
}

func TestRequestsThatWaitThreeSecondsAreRefusedAndNotBilled(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprintf("done at once %v", made), func(t *testing.T) {
			t.Parallel()
			runSimulation(t, made, waitlimit.MaxRequests, func(s *simulation) {
				const silence = 3510 * time.Millisecond
				s.log.beginSilence()
				began := time.Since(s.begun)
				var all [140]requestOutcome
				for i := range all {
					s.startRequest(s.Context(), []string{"a", "b", "cold", "a"}[i%4], &all[i])
					time.Sleep(25 * time.Millisecond)
				}
				time.Sleep(10 * time.Millisecond)
				s.log.endSilence()
				s.work.Wait()
				served := int64(0)
				for i, r := range all {
					waited := r.answeredAt - r.arrivedAt
					switch late := r.arrivedAt+waitlimit.MaxWait < began+silence; {
					case late && (!errors.Is(r.err, usage.ErrUnavailable) || waited != waitlimit.MaxWait):
						s.Errorf("request %d, come at %v: %v after %v, want a refusal after %v", i, r.arrivedAt, r.err, waited, waitlimit.MaxWait)
					case !late && r.err != nil:
						s.Errorf("request %d, come at %v: %v after %v", i, r.arrivedAt, r.err, waited)
					case !late:
						served++
					}
				}
				if got := s.readBilled("a") + s.readBilled("b") + s.readBilled("cold") - 2; got != served {
					s.Errorf("billed %d, want the %d that were served", got, served)
				}
			})
		})
	}
}

func TestALogThatIsBrieflyUnavailableRefusesNoRequest(t *testing.T) {
	t.Parallel()
	runSimulation(t, false, waitlimit.MaxRequests, func(s *simulation) {
		s.log.setUnavailable(true)
		var all [90]requestOutcome
		for i := range all {
			s.startRequest(s.Context(), []string{"a", "b", "cold"}[i%3], &all[i])
			time.Sleep(20 * time.Millisecond)
		}
		s.log.setUnavailable(false)
		s.work.Wait()
		for i, r := range all {
			if r.err != nil {
				s.Errorf("request %d, come at %v: %v at %v", i, r.arrivedAt, r.err, r.answeredAt)
			}
		}
	})
}

func TestRequestsAreRefusedAtOnceWhileTheLogIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]struct{ away, back func(*silentStore) }{
		"silent": {(*silentStore).beginSilence, (*silentStore).endSilence},
		"away":   {func(s *silentStore) { s.setUnavailable(true) }, func(s *silentStore) { s.setUnavailable(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runSimulation(t, false, waitlimit.MaxRequests, func(s *simulation) {
				lose.away(s.log)
				var all [260]requestOutcome
				for i := range all {
					s.startRequest(s.Context(), []string{"a", "cold"}[i%2], &all[i])
					time.Sleep(50 * time.Millisecond)
				}
				s.work.Wait()
				for i, r := range all {
					waited := r.answeredAt - r.arrivedAt
					if !errors.Is(r.err, usage.ErrUnavailable) || waited > waitlimit.MaxWait || r.arrivedAt > waitlimit.MaxSilence && waited > waitlimit.UncountedWait || r.answeredAt > waitlimit.MaxSilence+waitlimit.UncountedWait && r.arrivedAt < waitlimit.MaxSilence-waitlimit.UncountedWait {
						s.Errorf("request %d, come at %v: %v after %v", i, r.arrivedAt, r.err, waited)
					}
				}
				lose.back(s.log)
				time.Sleep(time.Second)
				mustCount(s.T, s.Meter, "a", 100_000)
				mustCount(s.T, s.Meter, "cold", 100_000)
				if got := s.readBilled("a") + s.readBilled("cold"); got != 3 {
					s.Errorf("billed %d, want the 3 that were served", got)
				}
			})
		})
	}
}

func TestWaitingRequestsAreLimitedInAllAndForEachAccount(t *testing.T) {
	t.Parallel()
	runSimulation(t, false, 8, func(s *simulation) {
		s.log.beginSilence()
		var a, b [8]requestOutcome
		for i := range a {
			s.startRequest(s.Context(), "a", &a[i])
		}
		time.Sleep(2 * waitlimit.UncountedWait)
		for i := range b {
			s.startRequest(s.Context(), "b", &b[i])
		}
		time.Sleep(2 * waitlimit.UncountedWait)
		s.log.endSilence()
		s.work.Wait()
		for name, all := range map[string][8]requestOutcome{"a": a, "b": b} {
			served := 0
			for _, r := range all {
				switch {
				case r.err == nil:
					served++
				case r.answeredAt-r.arrivedAt > waitlimit.UncountedWait:
					s.Errorf("%s: refused after %v, want at once", name, r.answeredAt-r.arrivedAt)
				}
			}
			if served != 4 {
				s.Errorf("%s: %d served, want 4 of 8 places", name, served)
			}
		}
		if got := [2]int64{s.readBilled("a"), s.readBilled("b")}; got != [2]int64{5, 5} {
			s.Errorf("billed %v, want those served", got)
		}
	})
}

func TestACancelledRequestStopsWaitingAndIsNotBilled(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"a", "cold"} {
		t.Run(account, func(t *testing.T) {
			t.Parallel()
			runSimulation(t, true, 2, func(s *simulation) {
				before := map[string]int64{"a": 1, "cold": 0}[account]
				s.log.beginSilence()
				ctx, goAway := context.WithCancel(s.Context())
				var gone, stays requestOutcome
				s.startRequest(ctx, account, &gone)
				time.Sleep(2 * waitlimit.UncountedWait)
				goAway()
				synctest.Wait()
				if gone.err == nil || gone.answeredAt-gone.arrivedAt > 2*waitlimit.UncountedWait {
					s.Errorf("the client that went: %+v", gone)
				}
				s.startRequest(s.Context(), account, &stays) // takes the account's one place
				time.Sleep(2 * waitlimit.UncountedWait)
				s.log.endSilence()
				s.work.Wait()
				if stays.err != nil {
					s.Errorf("the client that stayed: %v", stays.err)
				}
				if got := s.readBilled(account); got != before+1 {
					s.Errorf("billed %d, want %d", got, before+1)
				}
			})
		})
	}
}

func TestAReservationWhoseTickIsAppendedInTimeCanBeRefunded(t *testing.T) {
	t.Parallel()
	runSimulation(t, true, waitlimit.MaxRequests, func(s *simulation) {
		s.log.beginSilence()
		time.AfterFunc(2*time.Second, s.log.endSilence)
		r, err := s.Charge(s.Context(), s.limiter.NewWait("a"), grantOf("a", 100_000), "PUT /x", 1)
		if err != nil {
			s.Fatal(err)
		}
		if got := s.readBilled("a"); got != 2 {
			s.Errorf("billed %d, want 2", got)
		}
		if err := s.Settle(s.Context(), r, 1); err != nil {
			s.Error(err)
		}
		if got := s.readBilled("a"); got != 1 {
			s.Errorf("billed %d after the refund, want 1", got)
		}
	})
}

func TestOpeningAPeriodAndTickingShareOneWait(t *testing.T) {
	t.Parallel()
	runSimulation(t, false, waitlimit.MaxRequests, func(s *simulation) {
		s.log.setLag(700 * time.Millisecond) // opening a period takes four answers
		var r requestOutcome
		s.startRequest(s.Context(), "cold", &r)
		s.work.Wait()
		if waited := r.answeredAt - r.arrivedAt; !errors.Is(r.err, usage.ErrUnavailable) || waited > waitlimit.MaxWait+waitlimit.UncountedWait {
			s.Errorf("%v after %v, want a refusal after %v", r.err, waited, waitlimit.MaxWait)
		}
		time.Sleep(waitlimit.MaxSilence)
		s.log.setLag(0)
		if got := s.readBilled("cold"); got != 0 {
			s.Errorf("billed %d, want nothing", got)
		}
	})
}

func TestRequestsRefusedAtOnceAreNotKeptInMemory(t *testing.T) {
	t.Parallel()
	runSimulation(t, false, 8, func(s *simulation) {
		s.log.beginSilence()
		var all [1000]requestOutcome
		s.startRequest(s.Context(), "a", &all[0])
		time.Sleep(2 * waitlimit.UncountedWait)
		for i := range all[1:] {
			s.startRequest(s.Context(), "a", &all[i+1])
		}
		synctest.Wait()
		if got := s.QueuedRequests(); got > 8 {
			s.Errorf("%d are queued, want no more than there are places", got)
		}
		time.Sleep(2 * waitlimit.MaxWait)
		if got := s.QueuedRequests(); got != 0 {
			s.Errorf("%d are queued after everybody has left", got)
		}
		s.log.endSilence()
	})
}

func TestAnAnswerAtTheBeginningOfAWaitEndsTheSilence(t *testing.T) {
	t.Parallel()
	runSimulation(t, false, waitlimit.MaxRequests, func(s *simulation) {
		for range 1000 {
			s.log.beginSilence()
			var r [3]requestOutcome
			for i := range r {
				s.startRequest(s.Context(), "a", &r[i])
			}
			time.Sleep(waitlimit.UncountedWait)
			s.log.endSilence()
			s.work.Wait()
			if s.IsLogSilent() {
				s.Fatal("the log has answered, and is thought to be silent")
			}
		}
	})
}

func TestAPeriodEvictedWhileItIsOpenedIsOpenedAgain(t *testing.T) {
	t.Parallel()
	runSimulation(t, false, waitlimit.MaxRequests, func(s *simulation) {
		s.log.beginSilence()
		var before, after requestOutcome
		s.startRequest(s.Context(), "cold", &before)
		synctest.Wait()
		s.EvictContract("cold")
		s.startRequest(s.Context(), "cold", &after)
		time.Sleep(time.Second)
		s.log.endSilence()
		s.work.Wait()
		if before.err != nil || after.err != nil {
			s.Errorf("%v, %v", before.err, after.err)
		}
		if got := s.readBilled("cold"); got != 2 {
			s.Errorf("billed %d, want 2", got)
		}
	})
}
