package api

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/bench/loadclient"
	"lieudit/http/api"
	"lieudit/schemas/plan"
)

// environment is what a contest takes place on.
type environment struct {
	Options
	log          string
	service      *harness.Instance
	admin        harness.AdminClient
	emptyHandler *harness.Process
	emptyAddress string           // where the handler listens
	node         *harness.Process // nil: the log is the service's own
	scenarios    []scenario
}

// scenario is what the service is asked in a turn: one request for each account.
type scenario struct {
	path     string
	accounts int
	requests [][]byte
}

func (f *environment) serviceProcess() *harness.Process {
	if f.service == nil {
		return nil
	}
	return f.service.Process
}

// startEnvironment starts the processes and opens the accounts.
func (o Options) startEnvironment(ctx context.Context, workDir harness.WorkDir, log string) (f *environment, err error) {
	f = &environment{Options: o, log: log}
	if f.emptyHandler, err = harness.StartProcess(workDir, "empty", harness.EmptyHandlerCommand); err != nil {
		return f, err
	}
	if f.emptyAddress, err = f.emptyHandler.WaitForLine(ctx, "An empty handler"); err != nil {
		return f, err
	}
	var flags []string
	if log == Node {
		if f.node, err = harness.StartNode(ctx, workDir, "node"); err != nil {
			return f, err
		}
		flags = []string{"--eventstore", "esdb+unix://" + workDir.SocketPath("node")}
	}
	if f.service, err = harness.StartInstance(ctx, workDir, "service", "127.0.0.1:0", flags...); err != nil {
		return f, err
	}
	if err = f.service.WaitReady(ctx); err != nil {
		return f, err
	}
	if f.admin, err = f.service.AdminClient(); err != nil {
		return f, err
	}
	return f, f.openAccounts(ctx)
}

const (
	quota              = 1_000_000_000_000
	concurrentOpenings = 32 // accounts that are opened at a time
)

// openAccounts opens the accounts of every course, and asks once with each, so that its book is open.
func (f *environment) openAccounts(ctx context.Context) error {
	for _, accounts := range f.Accounts {
		f.Progress(fmt.Sprintf("%s, %d accounts", f.log, accounts))
		tokens := make([]string, accounts)
		var work errgroup.Group
		work.SetLimit(concurrentOpenings)
		for i := range tokens {
			work.Go(func() error {
				id := fmt.Sprintf("of-%d-%d", accounts, i)
				if err := f.admin.OpenAccount(ctx, id, plan.Business, quota); err != nil {
					return err
				}
				key, err := f.admin.IssueKey(ctx, id, "contest")
				tokens[i] = key.Token
				return err
			})
		}
		if err := work.Wait(); err != nil {
			return err
		}
		for _, path := range f.Paths {
			c := scenario{path: path, accounts: accounts}
			for _, token := range tokens {
				c.requests = append(c.requests, loadclient.EncodeGet(f.service.API, api.Base+path, token))
			}
			if err := sendEachOnce(ctx, f.service.API, c.requests); err != nil {
				return err
			}
			f.scenarios = append(f.scenarios, c)
		}
	}
	return nil
}

// waitCaughtUp waits until the read models have caught up with the turns before, so that they do not work in the empty
// handler's.
func (f *environment) waitCaughtUp(ctx context.Context) error {
	for {
		behind, err := f.admin.MaxLag(ctx)
		if err != nil || behind == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
