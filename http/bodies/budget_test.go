package bodies_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/bodies"
)

// taker takes shares of a budget and notes the order in which they are granted.
type taker struct {
	*bodies.Budget
	mu      sync.Mutex
	granted []string
	release map[string]func()
	failed  map[string]error
}

// failure is why a share was not granted.
func (b *taker) failure(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed[name]
}

func newTaker(total, part int64) *taker {
	return &taker{Budget: bodies.NewBudget(total, part), release: map[string]func(){}, failed: map[string]error{}}
}

// take asks for a share and returns when it is granted, refused or waited for.
func (b *taker) take(ctx context.Context, account string, n int, bytes int64) {
	name := fmt.Sprintf("%s%d", account, n)
	go func() {
		release, err := b.Acquire(ctx, account, bytes)
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			b.failed[name] = err
			return
		}
		b.granted, b.release[name] = append(b.granted, name), release
	}()
	synctest.Wait()
}

func (b *taker) giveBack(name string) {
	b.mu.Lock()
	release := b.release[name]
	b.mu.Unlock()
	release()
	synctest.Wait()
}

// expect checks what was granted, in which order; what is granted at once is in no order.
func (b *taker) expect(t *testing.T, want ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.granted, want) {
		t.Errorf("granted %q, want %q", b.granted, want)
	}
}

func TestSharesAreGrantedInTurnByAccountAndInOrderWithinOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaker(10, 10)
		b.take(t.Context(), "a", 1, 10)
		for n := 2; n <= 4; n++ {
			b.take(t.Context(), "a", n, 10)
		}
		b.take(t.Context(), "b", 1, 10)
		b.take(t.Context(), "b", 2, 10)
		b.take(t.Context(), "c", 1, 10)
		for _, next := range []string{"a1", "a2", "b1", "c1", "a3", "b2", "a4"} {
			b.giveBack(next)
		}
		b.expect(t, "a1", "a2", "b1", "c1", "a3", "b2", "a4")
		if got := b.Status(); got != (bodies.Status{}) {
			t.Errorf("all was given back, but %+v", got)
		}
	})
}

func TestAnAccountThatHoldsItsPartHoldsBackNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaker(10, 5)
		b.take(t.Context(), "a", 1, 5)
		b.take(t.Context(), "a", 2, 1)
		b.take(t.Context(), "b", 1, 3)
		b.take(t.Context(), "c", 1, 2)
		b.expect(t, "a1", "b1", "c1")
		b.giveBack("a1")
		b.expect(t, "a1", "b1", "c1", "a2")
	})
}

func TestALargeShareIsNotPassedOverForSmallOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaker(10, 8)
		b.take(t.Context(), "a", 1, 6)
		b.take(t.Context(), "b", 1, 8)
		b.take(t.Context(), "c", 1, 1)
		b.expect(t, "a1")
		b.giveBack("a1")
		b.mu.Lock()
		slices.Sort(b.granted)
		b.mu.Unlock()
		b.expect(t, "a1", "b1", "c1")
	})
}

func TestWhoWaitsTooLongIsRefusedAndHoldsBackNobodyAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaker(10, 8)
		b.take(t.Context(), "a", 1, 6)
		b.take(t.Context(), "b", 1, 8)
		time.Sleep(time.Second)
		b.take(t.Context(), "c", 1, 4)
		time.Sleep(bodies.MaxWait - 2*time.Second)
		synctest.Wait()
		b.expect(t, "a1")
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(b.failure("b1"), bodies.ErrOverloaded) {
			t.Errorf("after %v: %v, want ErrOverloaded", bodies.MaxWait, b.failure("b1"))
		}
		b.expect(t, "a1", "c1")
		if got, want := b.Status(), (bodies.Status{Used: 10, Overloaded: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestAShareWhoseTakerGoesAwayIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaker(10, 10)
		ctx, cancel := context.WithCancel(t.Context())
		b.take(t.Context(), "a", 1, 10)
		b.take(ctx, "b", 1, 10)
		b.take(t.Context(), "c", 1, 10)
		cancel()
		synctest.Wait()
		if !errors.Is(b.failure("b1"), context.Canceled) {
			t.Errorf("got %v, want the end of its context", b.failure("b1"))
		}
		b.giveBack("a1")
		b.giveBack("a1") // once more is nothing
		b.expect(t, "a1", "c1")
		if got, want := b.Status(), (bodies.Status{Used: 10}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestAShareGrantedAsItsTakerGoesAwayIsGivenBack(t *testing.T) {
	t.Parallel()
	for range 200 {
		b := bodies.NewBudget(1, 1)
		hold, err := b.Acquire(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if release, err := b.Acquire(ctx, "b", 1); err == nil {
				release()
			}
		}()
		go cancel()
		hold()
		<-done
		if got := b.Status(); got.Used != 0 || got.Waiting != 0 {
			t.Fatalf("nobody holds or waits, but %+v", got)
		}
	}
}

func TestAShareOverAnAccountsPartIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	b := bodies.NewBudget(10, 5)
	if _, err := b.Acquire(t.Context(), "a", 6); !errors.Is(err, bodies.ErrOverloaded) {
		t.Errorf("got %v, want ErrOverloaded", err)
	}
}

func TestOneAccountDoesNotTakeAllThePlacesToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTaker(1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for n := range 2050 {
			b.take(ctx, "a", n, 1)
		}
		if got := b.Status(); got.Waiting != 2048 || got.Overloaded != 1 {
			t.Errorf("got %+v, want 2048 waiting and 1 refused", got)
		}
		b.take(ctx, "b", 0, 1)
		if got := b.Status(); got.Waiting != 2049 {
			t.Errorf("another account does not wait: %+v", got)
		}
	})
}

func TestTheLevelInUseIsTold(t *testing.T) {
	t.Parallel()
	b := bodies.NewBudget(10, 10)
	var told []bool
	b.Watch(5, func(above bool) { told = append(told, above) })
	var release [3]func()
	for i := range release {
		release[i], _ = b.Acquire(t.Context(), "a", 3)
	}
	for _, r := range release {
		r()
	}
	if !slices.Equal(told, []bool{true, false}) {
		t.Errorf("told %v, want once above and once below", told)
	}
}

// TestABudgetIsNeverOverdrawn has takers of all sizes at once, with the race detector's eyes on it.
func TestABudgetIsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	b := bodies.NewBudget(100, 50)
	done := make(chan struct{})
	for taker := range 16 {
		go func() {
			defer func() { done <- struct{}{} }()
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == taker%7 {
					cancel()
				}
				release, err := b.Acquire(ctx, fmt.Sprint(taker%3), int64(1+(n*taker)%50))
				if got := b.Status().Used; got > 100 || got < 0 {
					t.Errorf("%d of 100 are in use", got)
				}
				if err == nil {
					release()
				}
				cancel()
			}
		}()
	}
	for range 16 {
		<-done
	}
	if got := b.Status(); got.Used != 0 || got.Waiting != 0 {
		t.Errorf("nobody holds or waits, but %+v", got)
	}
}
