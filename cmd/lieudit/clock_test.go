package main

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lieudit/cmd/lieudit/service"
)

func TestTheStateNowHoldsAllThatIsOnALogWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	var behind atomic.Int64
	svc := startService(t, func(c *service.Config) {
		c.Now = func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }
	})
	svc.runCommand(t, `account open "Chez Paul" --id paul --plan STARTER`)
	behind.Store(int64(2 * time.Hour))
	svc.runCommand(t, `key issue paul --label late`)
	if got := svc.runCommand(t, "audit state paul --json"); !strings.Contains(got, `"late"`) {
		t.Errorf("got %s, want the key that was issued", got)
	}
}
