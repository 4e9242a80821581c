// Command check runs every check of the project, for developers and CI alike. It installs the tools that the tests need
// where it can, starts a Postgres of its own, and runs the steps of steps.go in order; the first that fails ends it. Its
// constraint: exit code 0 means that nothing failed and that no test was skipped because a service was missing.
//
// On a machine that has other work, "check -busy" multiplies every time limit in the tests by three. Nothing else differs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"lieudit/eventstore/deadlinetest"
)

// busyFactor multiplies the time limits of tests on a busy machine.
const busyFactor = 3

// testLimit is how long the tests of one package may take on a machine of their own.
const testLimit = 40 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	busy := flag.Bool("busy", false, "give every limit of time in the tests three times as long")
	flag.Parse()
	factor := 1
	if *busy {
		factor = busyFactor
	}
	err := run(ctx, factor)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	fmt.Println("check: all passed")
}

// run installs tools, starts Postgres and runs all steps. The variables it sets make tests fail where they would skip.
func run(ctx context.Context, factor int) error {
	if err := installMissingTools(ctx); err != nil {
		return err
	}
	db, err := startPostgres(ctx)
	if err != nil {
		return err
	}
	defer db.stop()
	env := []string{"LIEUDIT_CHECK=1", "LIEUDIT_TEST_POSTGRES=" + db.url, deadlinetest.FactorVariable + "=" + strconv.Itoa(factor)}
	for _, s := range steps(time.Duration(factor) * testLimit) {
		if err := s.run(ctx, env); err != nil {
			return err
		}
	}
	return nil
}
