//go:build unix

package projector_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lieudit/eventstore/sqldb/sqldbtest"
)

func TestPausedOwnerIsReplacedAndDoesNoHarmWhenItWakes(t *testing.T) {
	t.Parallel()
	address := sqldbtest.NewPostgresDatabase(t) // a SQLite file belongs to one process
	const accounts = 200
	folders := copyLogFolders(t, accounts, 1)
	paused := startChild(t, address, folders[1])
	awaitProgress(t, address, 0)
	if err := paused.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s := openCluster(t, address, folders[0])
	i := s.startInstance(t)
	begin := time.Now()
	i.awaitPosition(t, s.lastPosition(t))
	t.Logf("taken over and caught up after %v", time.Since(begin))
	before := i.readRows(t)
	if err := paused.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // time for it to do the harm
	if diff := cmp.Diff(before, i.readRows(t)); diff != "" {
		t.Errorf("rows changed: %s", diff)
	}
	s.checkComplete(t, i, accounts)
}
