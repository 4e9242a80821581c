// Command check runs every check of the project, for developers and CI alike. It installs the tools that the tests need
// where it can, starts a Postgres of its own and a PgBouncer before it, and runs the steps of steps.go in order. The first step that fails ends it.
// Exit code 0 means that nothing failed and that no test was skipped because a service was missing. Only the search for
// published vulnerabilities is left out if its database cannot be reached, and the output says so.
//
// Run it in the root of the module: runChecks calls installMissingTools, installRouters, installClientTools, startPostgres and
// startPgBouncer, then reportNewerReleases and checkVulnerabilities, and then step.runCommand for each step.
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
	"lieudit/queries/route/routerprocess"
)

// busyFactor multiplies the time limits of tests on a busy machine.
const busyFactor = 3

// testLimit is how long the tests of one package may take on a machine that has no other work.
const testLimit = 40 * time.Minute

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	busy := flag.Bool("busy", false, "give every limit of time in the tests three times as long")
	flag.Parse()
	factor := 1
	if *busy {
		factor = busyFactor
	}
	err := runChecks(ctx, factor)
	stop() // os.Exit below runs no deferred call
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	fmt.Println("check: all passed")
}

// runChecks installs missing tools, starts Postgres and PgBouncer and runs all steps; it returns the first error. LIEUDIT_CHECK makes a test
// fail that would otherwise skip because a service is missing. The time limits of packages and of tests grow by factor.
func runChecks(ctx context.Context, factor int) error {
	if err := installMissingTools(ctx); err != nil {
		return err
	}
	routers, err := installRouters(ctx)
	if err != nil {
		return err
	}
	clients, err := installClientTools(ctx)
	if err != nil {
		return err
	}
	db, err := startPostgres(ctx)
	if err != nil {
		return err
	}
	defer db.stop()
	pooler, err := startPgBouncer(ctx, db.url)
	if err != nil {
		return err
	}
	defer pooler.stop()
	env := []string{"LIEUDIT_CHECK=1", "LIEUDIT_TEST_POSTGRES=" + db.url, pgBouncerVariable + "=" + pooler.url, routerprocess.FolderVariable + "=" + routers, clientsVariable + "=" + clients, deadlinetest.FactorVariable + "=" + strconv.Itoa(factor)}
	reportNewerReleases(ctx, os.Stdout)
	if err := checkVulnerabilities(ctx, os.Stdout); err != nil {
		return err
	}
	for _, s := range steps(time.Duration(factor) * testLimit) {
		if err := s.runCommand(ctx, env); err != nil {
			return err
		}
	}
	return nil
}
