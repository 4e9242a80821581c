package budget_test

import (
	"testing"
	"testing/synctest"

	"lieudit/http/budget"
)

func TestAShareGrowsOnlyIntoWhatIsLeftAndShrinksForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newShareRecorder(10, 8)
		share, err := b.AcquireShare(t.Context(), "a", 6)
		if err != nil {
			t.Fatal(err)
		}
		b.acquire(t.Context(), "b", 1, 5)
		if share.Resize(9) || share.Units() != 6 {
			t.Errorf("a share grew beyond the account's part: %d", share.Units())
		}
		b.expectGranted(t)
		if !share.Resize(5) {
			t.Error("a share does not shrink")
		}
		synctest.Wait()
		b.expectGranted(t, "b1")
		if share.Resize(6) || share.Units() != 5 {
			t.Errorf("a share grew beyond the total: %d", share.Units())
		}
		share.Release()
		share.Release()
		b.returnShare("b1")
		if share.Resize(1) {
			t.Error("a share that was given back grows")
		}
		if got := b.Status(); got != (budget.Status{}) {
			t.Errorf("all was given back, but %+v", got)
		}
	})
}

func TestAShareWithoutUnitsIsKept(t *testing.T) {
	t.Parallel()
	b := budget.New(10, 5)
	share, err := b.AcquireShare(t.Context(), "a", 5)
	if err != nil || !share.Resize(0) {
		t.Fatal(err)
	}
	other, ok := b.TryShare("a", 5)
	if !ok {
		t.Fatal("what was given back is not free")
	}
	other.Release() // now the account holds no units, but a share
	if !share.Resize(5) {
		t.Error("a share without units does not grow")
	}
	if _, ok := b.TryShare("a", 1); ok {
		t.Error("two shares exceed the account's part")
	}
}

func TestWhatIsDoneTakesItsShareAtOnce(t *testing.T) {
	t.Parallel()
	b := budget.New(10, 5)
	if _, ok := b.TryShare("a", 6); ok || b.Status() != (budget.Status{Overloaded: 1}) {
		t.Errorf("a share over the part is granted, or not noted: %+v", b.Status())
	}
	share := b.ClaimShare("a", 20)
	if _, ok := b.TryShare("b", 1); ok || b.Status().Used != 20 {
		t.Errorf("a budget that is exceeded grants more: %+v", b.Status())
	}
	share.Release()
	if _, ok := b.TryShare("b", 1); !ok {
		t.Error("what was claimed is not given back")
	}
}
