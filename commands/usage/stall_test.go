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
	"lieudit/eventstore/waiting"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// slow is a log that falls silent, as a real EventStoreDB does: what is asked meanwhile is answered after it. It can be
// away as well.
type slow struct {
	eventstore.Store
	made bool // what is asked in a silence is done at once, and only its answer is late

	mu   sync.Mutex
	over chan struct{} // nil: it speaks
	away bool
	lag  time.Duration // of every answer
}

func (s *slow) fallSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = make(chan struct{})
}

func (s *slow) speak() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.over)
	s.over = nil
}

func (s *slow) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *slow) setLag(lag time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = lag
}

func (s *slow) answer(ctx context.Context) error {
	s.mu.Lock()
	over, away, lag := s.over, s.away, s.lag
	s.mu.Unlock()
	time.Sleep(lag)
	if away {
		return eventstore.ErrUnavailable
	}
	if over == nil {
		return nil
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Append(ctx context.Context, stream string, expected eventstore.Revision, events []eventstore.Proposed) (done eventstore.Committed, err error) {
	if s.made {
		done, err = s.Store.Append(ctx, stream, expected, events)
	}
	if away := s.answer(ctx); away != nil {
		return done, away
	}
	if !s.made {
		return s.Store.Append(ctx, stream, expected, events)
	}
	return done, err
}

func (s *slow) ReadStream(ctx context.Context, stream string, from eventstore.Revision, dir eventstore.Direction) iter.Seq2[eventstore.Recorded, error] {
	return func(yield func(eventstore.Recorded, error) bool) {
		if err := s.answer(ctx); err != nil {
			yield(eventstore.Recorded{}, err)
			return
		}
		s.Store.ReadStream(ctx, stream, from, dir)(yield)
	}
}

// stage is a ledger over a log that can be slow, in time of its own, in which waiting costs nothing.
type stage struct {
	*testing.T
	*usage.Ledger
	log   *slow
	wall  *clock
	begun time.Time
	work  sync.WaitGroup
}

func inBubble(t *testing.T, made bool, room int, run func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newClock(at(t, "2026-03-01T12:00:00+01:00"))
		log := &slow{Store: logOf(t, c), made: made}
		terms := &volumes{caps: map[string]int64{"a": 100_000, "b": 100_000, "cold": 100_000}}
		l := instance(t, log, log.Store, terms, c.now)
		l.WaitIn(waiting.NewRoom(room))
		counts(t, l, "a", 100_000)
		counts(t, l, "b", 100_000)
		s := &stage{T: t, Ledger: l, log: log, wall: c, begun: time.Now()}
		run(s)
		s.work.Wait()
	})
}

// outcome is what became of a request, and when.
type outcome struct {
	came, went time.Duration // since the test began
	err        error
}

// request asks for one request of an account to be counted and notes what becomes of it.
func (s *stage) request(ctx context.Context, account string, to *outcome) {
	to.came = time.Since(s.begun)
	s.work.Go(func() {
		_, to.err = s.Count(ctx, holder(account, 100_000), "GET /me")
		to.went = time.Since(s.begun)
	})
}

// billed is what the log itself says was counted, when all that comes behind has come.
func (s *stage) billed(account string) int64 {
	s.Helper()
	time.Sleep(time.Second) // in a bubble: until nothing moves any more
	synctest.Wait()
	f, _ := refold(s.T, s.log.Store, ledger.Stream(account, plan.PeriodAt(anchor, s.wall.now()).First))
	spent, err := s.Spending(s.Context(), holder(account, 100_000))
	if err != nil || spent.Used != f.Lines.Total() {
		s.Errorf("%s: the instance says %d, %v, the log %d", account, spent.Used, err, f.Lines.Total())
	}
	return f.Lines.Total()
}

func TestASilenceOfTwoAndAHalfSecondsRefusesNobody(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprintf("done at once %v", made), func(t *testing.T) {
			t.Parallel()
			inBubble(t, made, waiting.Places, func(s *stage) {
				s.log.fallSilent()
				var all [120]outcome
				for i := range all {
					s.request(s.Context(), []string{"a", "b", "cold"}[i%3], &all[i])
					time.Sleep(2500 * time.Millisecond / time.Duration(len(all)))
				}
				s.log.speak()
				s.work.Wait()
				for i, r := range all {
					if r.err != nil {
						s.Errorf("request %d, come at %v: %v at %v", i, r.came, r.err, r.went)
					}
				}
				if got := [3]int64{s.billed("a"), s.billed("b"), s.billed("cold")}; got != [3]int64{41, 41, 40} {
					s.Errorf("billed %v, want 40 each and one more of two", got)
				}
			})
		})
	}
}

func TestALongerSilenceRefusesThoseWhoWaitedThreeSecondsAndBillsNoneOfThem(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		t.Run(fmt.Sprintf("done at once %v", made), func(t *testing.T) {
			t.Parallel()
			inBubble(t, made, waiting.Places, func(s *stage) {
				const silence = 3510 * time.Millisecond
				s.log.fallSilent()
				began := time.Since(s.begun)
				var all [140]outcome
				for i := range all {
					s.request(s.Context(), []string{"a", "b", "cold", "a"}[i%4], &all[i])
					time.Sleep(25 * time.Millisecond)
				}
				time.Sleep(10 * time.Millisecond)
				s.log.speak()
				s.work.Wait()
				served := int64(0)
				for i, r := range all {
					waited := r.went - r.came
					switch late := r.came+waiting.Longest < began+silence; {
					case late && (!errors.Is(r.err, usage.ErrUnavailable) || waited != waiting.Longest):
						s.Errorf("request %d, come at %v: %v after %v, want a refusal after %v", i, r.came, r.err, waited, waiting.Longest)
					case !late && r.err != nil:
						s.Errorf("request %d, come at %v: %v after %v", i, r.came, r.err, waited)
					case !late:
						served++
					}
				}
				if got := s.billed("a") + s.billed("b") + s.billed("cold") - 2; got != served {
					s.Errorf("billed %d, want the %d that were served", got, served)
				}
			})
		})
	}
}

func TestALogThatIsAwayForAMomentRefusesNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, false, waiting.Places, func(s *stage) {
		s.log.setAway(true)
		var all [90]outcome
		for i := range all {
			s.request(s.Context(), []string{"a", "b", "cold"}[i%3], &all[i])
			time.Sleep(20 * time.Millisecond)
		}
		s.log.setAway(false)
		s.work.Wait()
		for i, r := range all {
			if r.err != nil {
				s.Errorf("request %d, come at %v: %v at %v", i, r.came, r.err, r.went)
			}
		}
	})
}

func TestALostLogRefusesAtOnceUntilItIsBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]struct{ away, back func(*slow) }{
		"silent": {(*slow).fallSilent, (*slow).speak},
		"away":   {func(s *slow) { s.setAway(true) }, func(s *slow) { s.setAway(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, false, waiting.Places, func(s *stage) {
				lose.away(s.log)
				var all [260]outcome
				for i := range all {
					s.request(s.Context(), []string{"a", "cold"}[i%2], &all[i])
					time.Sleep(50 * time.Millisecond)
				}
				s.work.Wait()
				for i, r := range all {
					waited := r.went - r.came
					if !errors.Is(r.err, usage.ErrUnavailable) || waited > waiting.Longest || r.came > waiting.Lost && waited > waiting.Brief || r.went > waiting.Lost+waiting.Brief && r.came < waiting.Lost-waiting.Brief {
						s.Errorf("request %d, come at %v: %v after %v", i, r.came, r.err, waited)
					}
				}
				lose.back(s.log)
				time.Sleep(time.Second)
				counts(s.T, s.Ledger, "a", 100_000)
				counts(s.T, s.Ledger, "cold", 100_000)
				if got := s.billed("a") + s.billed("cold"); got != 3 {
					s.Errorf("billed %d, want the 3 that were served", got)
				}
			})
		})
	}
}

func TestOnlySoManyWaitAndHalfOfThemForOneAccount(t *testing.T) {
	t.Parallel()
	inBubble(t, false, 8, func(s *stage) {
		s.log.fallSilent()
		var a, b [8]outcome
		for i := range a {
			s.request(s.Context(), "a", &a[i])
		}
		time.Sleep(2 * waiting.Brief)
		for i := range b {
			s.request(s.Context(), "b", &b[i])
		}
		time.Sleep(2 * waiting.Brief)
		s.log.speak()
		s.work.Wait()
		for name, all := range map[string][8]outcome{"a": a, "b": b} {
			served := 0
			for _, r := range all {
				switch {
				case r.err == nil:
					served++
				case r.went-r.came > waiting.Brief:
					s.Errorf("%s: refused after %v, want at once", name, r.went-r.came)
				}
			}
			if served != 4 {
				s.Errorf("%s: %d served, want 4 of 8 places", name, served)
			}
		}
		if got := [2]int64{s.billed("a"), s.billed("b")}; got != [2]int64{5, 5} {
			s.Errorf("billed %v, want those served", got)
		}
	})
}

func TestAClientThatGoesAwayGivesItsPlaceBackAndIsNotBilled(t *testing.T) {
	t.Parallel()
	for _, account := range []string{"a", "cold"} {
		t.Run(account, func(t *testing.T) {
			t.Parallel()
			inBubble(t, true, 2, func(s *stage) {
				before := map[string]int64{"a": 1, "cold": 0}[account]
				s.log.fallSilent()
				ctx, goAway := context.WithCancel(s.Context())
				var gone, stays outcome
				s.request(ctx, account, &gone)
				time.Sleep(2 * waiting.Brief)
				goAway()
				synctest.Wait()
				if gone.err == nil || gone.went-gone.came > 2*waiting.Brief {
					s.Errorf("the client that went: %+v", gone)
				}
				s.request(s.Context(), account, &stays) // the account's one place
				time.Sleep(2 * waiting.Brief)
				s.log.speak()
				s.work.Wait()
				if stays.err != nil {
					s.Errorf("the client that stayed: %v", stays.err)
				}
				if got := s.billed(account); got != before+1 {
					s.Errorf("billed %d, want %d", got, before+1)
				}
			})
		})
	}
}

func TestAWriteWhoseTickLandsInTimeIsHeldAndRefundedAsEver(t *testing.T) {
	t.Parallel()
	inBubble(t, true, waiting.Places, func(s *stage) {
		s.log.fallSilent()
		time.AfterFunc(2*time.Second, s.log.speak)
		r, err := s.Hold(s.Context(), holder("a", 100_000), "PUT /x")
		if err != nil {
			s.Fatal(err)
		}
		if got := s.billed("a"); got != 2 {
			s.Errorf("billed %d, want 2", got)
		}
		if err := r.Refund(s.Context()); err != nil {
			s.Error(err)
		}
		if got := s.billed("a"); got != 1 {
			s.Errorf("billed %d after the refund, want 1", got)
		}
	})
}

func TestARequestWaitsOnceForItsBookAndItsTick(t *testing.T) {
	t.Parallel()
	inBubble(t, false, waiting.Places, func(s *stage) {
		s.log.setLag(700 * time.Millisecond) // four answers open a book
		var r outcome
		s.request(s.Context(), "cold", &r)
		s.work.Wait()
		if waited := r.went - r.came; !errors.Is(r.err, usage.ErrUnavailable) || waited > waiting.Longest+waiting.Brief {
			s.Errorf("%v after %v, want a refusal after %v", r.err, waited, waiting.Longest)
		}
		time.Sleep(waiting.Lost)
		s.log.setLag(0)
		if got := s.billed("cold"); got != 0 {
			s.Errorf("billed %d, want nothing", got)
		}
	})
}

func TestWhoIsRefusedAtOnceIsNotKeptUntilTheLogAnswers(t *testing.T) {
	t.Parallel()
	inBubble(t, false, 8, func(s *stage) {
		s.log.fallSilent()
		var all [1000]outcome
		s.request(s.Context(), "a", &all[0])
		time.Sleep(2 * waiting.Brief)
		for i := range all[1:] {
			s.request(s.Context(), "a", &all[i+1])
		}
		synctest.Wait()
		if got := s.Queued(); got > 8 {
			s.Errorf("%d are queued, want no more than there are places", got)
		}
		time.Sleep(2 * waiting.Longest)
		if got := s.Queued(); got != 0 {
			s.Errorf("%d are queued after everybody has left", got)
		}
		s.log.speak()
	})
}

func TestAnAnswerThatComesAsAWaitBeginsEndsTheSilence(t *testing.T) {
	t.Parallel()
	inBubble(t, false, waiting.Places, func(s *stage) {
		for range 1000 {
			s.log.fallSilent()
			var r [3]outcome
			for i := range r {
				s.request(s.Context(), "a", &r[i])
			}
			time.Sleep(waiting.Brief)
			s.log.speak()
			s.work.Wait()
			if s.CountsSilence() {
				s.Fatal("the log has answered, and is thought to be silent")
			}
		}
	})
}

func TestABookThatIsPutAwayWhileItIsOpenedIsOpenedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, false, waiting.Places, func(s *stage) {
		s.log.fallSilent()
		var before, after outcome
		s.request(s.Context(), "cold", &before)
		synctest.Wait()
		s.PutAway("cold")
		s.request(s.Context(), "cold", &after)
		time.Sleep(time.Second)
		s.log.speak()
		s.work.Wait()
		if before.err != nil || after.err != nil {
			s.Errorf("%v, %v", before.err, after.err)
		}
		if got := s.billed("cold"); got != 2 {
			s.Errorf("billed %d, want 2", got)
		}
	})
}
