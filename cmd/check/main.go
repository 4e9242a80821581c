// Command check is the whole test run, as developers and CI start it: it installs what the tests need where it
// can, starts a Postgres of its own, and runs every check. It ends with 0 only when nothing failed and
// nothing was skipped for want of a service.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
	fmt.Println("check: all passed")
}

func run(ctx context.Context) error {
	if err := install(ctx); err != nil {
		return err
	}
	db, err := startPostgres(ctx)
	if err != nil {
		return err
	}
	defer db.stop()
	env := []string{"LIEUDIT_CHECK=1", "LIEUDIT_TEST_POSTGRES=" + db.url}
	for _, s := range steps() {
		if err := s.run(ctx, env); err != nil {
			return err
		}
	}
	return nil
}
