package budget_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lieudit/http/budget"
)

// shareRecorder takes shares of a budget and notes the order in which they are granted.
type shareRecorder struct {
	*budget.Budget
	mu      sync.Mutex
	granted []string
	release map[string]func()
	failed  map[string]error
}

// failure is why a share was not granted.
func (b *shareRecorder) failure(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed[name]
}

func newShareRecorder(total, part int64) *shareRecorder {
	return &shareRecorder{Budget: budget.New(total, part), release: map[string]func(){}, failed: map[string]error{}}
}

// acquire asks for a share and returns when it is granted, refused or waited for.
func (b *shareRecorder) acquire(ctx context.Context, account string, n int, bytes int64) {
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

func (b *shareRecorder) returnShare(name string) {
	b.mu.Lock()
	release := b.release[name]
	b.mu.Unlock()
	release()
	synctest.Wait()
}

// expectGranted checks what was granted, in which order; what is granted at once is in no order.
func (b *shareRecorder) expectGranted(t *testing.T, want ...string) {
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
		b := newShareRecorder(10, 10)
		b.acquire(t.Context(), "a", 1, 10)
		for n := 2; n <= 4; n++ {
			b.acquire(t.Context(), "a", n, 10)
		}
		b.acquire(t.Context(), "b", 1, 10)
		b.acquire(t.Context(), "b", 2, 10)
		b.acquire(t.Context(), "c", 1, 10)
		for _, next := range []string{"a1", "a2", "b1", "c1", "a3", "b2", "a4"} {
			b.returnShare(next)
		}
		b.expectGranted(t, "a1", "a2", "b1", "c1", "a3", "b2", "a4")
		if got := b.Status(); got != (budget.Status{}) {
			t.Errorf("all was given back, but %+v", got)
		}
	})
}

func TestAnAccountAtItsPartBlocksNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newShareRecorder(10, 5)
		b.acquire(t.Context(), "a", 1, 5)
		b.acquire(t.Context(), "a", 2, 1)
		b.acquire(t.Context(), "b", 1, 3)
		b.acquire(t.Context(), "c", 1, 2)
		b.expectGranted(t, "a1", "b1", "c1")
		b.returnShare("a1")
		b.expectGranted(t, "a1", "b1", "c1", "a2")
	})
}

func TestALargeShareIsNotOvertakenBySmallOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newShareRecorder(10, 8)
		b.acquire(t.Context(), "a", 1, 6)
		b.acquire(t.Context(), "b", 1, 8)
		b.acquire(t.Context(), "c", 1, 1)
		b.expectGranted(t, "a1")
		b.returnShare("a1")
		b.mu.Lock()
		slices.Sort(b.granted)
		b.mu.Unlock()
		b.expectGranted(t, "a1", "b1", "c1")
	})
}

func TestAShareThatWaitsTooLongIsRefusedAndBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newShareRecorder(10, 8)
		b.acquire(t.Context(), "a", 1, 6)
		b.acquire(t.Context(), "b", 1, 8)
		time.Sleep(time.Second)
		b.acquire(t.Context(), "c", 1, 4)
		time.Sleep(budget.MaxWait - 2*time.Second)
		synctest.Wait()
		b.expectGranted(t, "a1")
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(b.failure("b1"), budget.ErrOverloaded) {
			t.Errorf("after %v: %v, want ErrOverloaded", budget.MaxWait, b.failure("b1"))
		}
		b.expectGranted(t, "a1", "c1")
		if got, want := b.Status(), (budget.Status{Used: 10, Overloaded: 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestAShareIsGivenBackWhenItsRequestEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newShareRecorder(10, 10)
		ctx, cancel := context.WithCancel(t.Context())
		b.acquire(t.Context(), "a", 1, 10)
		b.acquire(ctx, "b", 1, 10)
		b.acquire(t.Context(), "c", 1, 10)
		cancel()
		synctest.Wait()
		if !errors.Is(b.failure("b1"), context.Canceled) {
			t.Errorf("got %v, want the end of its context", b.failure("b1"))
		}
		b.returnShare("a1")
		b.returnShare("a1") // once more is nothing
		b.expectGranted(t, "a1", "c1")
		if got, want := b.Status(), (budget.Status{Used: 10}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

func TestAShareGrantedWhileItsRequestEndsIsGivenBack(t *testing.T) {
	t.Parallel()
	for range 200 {
		b := budget.New(1, 1)
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
	b := budget.New(10, 5)
	if _, err := b.Acquire(t.Context(), "a", 6); !errors.Is(err, budget.ErrOverloaded) {
		t.Errorf("got %v, want ErrOverloaded", err)
	}
}

func TestOneAccountCannotTakeAllTheWaitingPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newShareRecorder(1, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for n := range 2050 {
			b.acquire(ctx, "a", n, 1)
		}
		if got := b.Status(); got.Waiting != 2048 || got.Overloaded != 1 {
			t.Errorf("got %+v, want 2048 waiting and 1 refused", got)
		}
		b.acquire(ctx, "b", 0, 1)
		if got := b.Status(); got.Waiting != 2049 {
			t.Errorf("another account does not wait: %+v", got)
		}
	})
}

func TestCrossingTheLevelIsReported(t *testing.T) {
	t.Parallel()
	b := budget.New(10, 10)
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
	b := budget.New(100, 50)
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
