package usage

import (
	"testing"
	"testing/synctest"
)

func TestAGroupStartsGoroutinesUntilItHasEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g goroutineGroup
		release, isEnding, hasEnded := make(chan struct{}), false, false
		wait := func() { <-release }
		if !g.start(wait) {
			t.Error("the first one is refused")
		}
		go func() {
			g.end(func() { isEnding = true })
			hasEnded = true
		}()
		synctest.Wait()
		if !g.start(wait) || isEnding || hasEnded {
			t.Errorf("while one runs: another is refused, or it is ending %v, or has ended %v", isEnding, hasEnded)
		}
		close(release)
		synctest.Wait()
		if !isEnding || !hasEnded {
			t.Errorf("nothing runs: it is ending %v, has ended %v", isEnding, hasEnded)
		}
		if g.start(wait) {
			t.Error("one is started after the end")
		}
	})
}
