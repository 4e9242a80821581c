// Command check checks the project, for developers and CI alike, at one of three levels:
//
//	go run ./cmd/check -quick   two minutes between two edits; needs only Go, starts and installs nothing
//	go run ./cmd/check          before a commit: all tests with a Postgres and a browser, some simulated days
//	go run ./cmd/check -all     everything, as in CI: the race detector, other systems, proxies, foreign clients, routing servers
//
// It installs missing tools that its level needs, if it can, starts a Postgres of its own, at the whole level behind a
// PgBouncer, and runs the steps of steps.go in order. The first step that fails ends it. Exit code 0 means that nothing
// failed, and that no test of the level was skipped because a service was missing. The one exception is the search for
// published vulnerabilities: if its database cannot be reached it is skipped, and the output reports that. The output ends
// with the time of each step and what the level left out.
//
// Run it in the root of the module: runChecks prepares the level's tools and servers and then calls step.runCommand for each
// step. The package leveltest assigns tests to levels.
//
// On a machine with other work, "check -busy" multiplies every time limit in the tests by three. Nothing else differs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"lieudit/eventstore/deadlinetest"
	"lieudit/eventstore/leveltest"
	"lieudit/queries/route/routerprocess"
)

// busyFactor multiplies the time limits of tests on a busy machine.
const busyFactor = 3

// testLimit is how long the tests of one package may take on a machine without other work.
const testLimit = 40 * time.Minute

func main() {
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = runChecks(ctx, o)
	stop() // os.Exit below runs no deferred call
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	fmt.Println("check: all passed")
}

// runChecks prepares what the level needs and runs its steps. It returns the first error.
func runChecks(ctx context.Context, o options) error {
	var times stepTimes
	defer times.print(os.Stdout)
	env, stop, err := prepare(ctx, o, &times)
	if err != nil {
		return err
	}
	defer stop()
	if o.level == leveltest.Whole {
		reportNewerReleases(ctx, os.Stdout)
		if err := checkVulnerabilities(ctx, os.Stdout); err != nil {
			return err
		}
	}
	for _, s := range steps(o.level, time.Duration(o.factor)*testLimit) {
		if err := times.measure(s.name, func() error { return s.runCommand(ctx, env) }); err != nil {
			return err
		}
	}
	if what := leftOut[o.level]; what != "" {
		fmt.Println("== left out:", what)
	}
	return nil
}

// prepare installs the missing tools and starts the servers. It returns the variables that tell the tests about them and the
// level, and a function that stops the servers.
func prepare(ctx context.Context, o options, times *stepTimes) (env []string, stop func(), err error) {
	env = []string{leveltest.Variable + "=" + string(o.level), deadlinetest.FactorVariable + "=" + strconv.Itoa(o.factor)}
	if o.level == leveltest.Quick { // the tests skip whatever needs a server, even if one is named
		return append(env, postgresVariable+"=", pgBouncerVariable+"="), func() {}, nil
	}
	var servers []*postgres
	stop = func() {
		for _, s := range slices.Backward(servers) {
			s.stop()
		}
	}
	err = times.measure("tools and servers", func() error {
		if err := installMissingTools(ctx, o.level); err != nil {
			return err
		}
		db, err := startPostgres(ctx)
		if err != nil {
			return err
		}
		servers, env = append(servers, db), append(env, postgresVariable+"="+db.url)
		if o.level != leveltest.Whole {
			return nil
		}
		pooler, err := startPgBouncer(ctx, db.url)
		if err != nil {
			return err
		}
		servers, env = append(servers, pooler), append(env, pgBouncerVariable+"="+pooler.url)
		routers, err := installRouters(ctx)
		if err != nil {
			return err
		}
		clients, err := installClientTools(ctx)
		env = append(env, routerprocess.FolderVariable+"="+routers, clientsVariable+"="+clients)
		return err
	})
	if err != nil {
		stop()
	}
	return env, stop, err
}
