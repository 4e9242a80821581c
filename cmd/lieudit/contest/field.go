package contest

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"lieudit/cmd/lieudit/caller"
	"lieudit/cmd/lieudit/fleet"
	"lieudit/http/server"
	"lieudit/schemas/plan"
)

// field is what a contest takes place on.
type field struct {
	Options
	log     string
	service *fleet.Instance
	office  fleet.Office
	handler *fleet.Process
	empty   string         // where the handler listens
	node    *fleet.Process // nil: the log is the service's own
	courses []course
}

// course is what the service is asked in a turn: one request for each account.
type course struct {
	path     string
	accounts int
	requests [][]byte
}

func (f *field) serving() *fleet.Process {
	if f.service == nil {
		return nil
	}
	return f.service.Process
}

// prepare starts the processes and opens the accounts.
func (o Options) prepare(ctx context.Context, g fleet.Ground, log string) (f *field, err error) {
	f = &field{Options: o, log: log}
	if f.handler, err = fleet.Start(g, "empty", EmptyCommand[:]...); err != nil {
		return f, err
	}
	if f.empty, err = f.handler.Await(ctx, "An empty handler"); err != nil {
		return f, err
	}
	var on []string
	if log == Node {
		if f.node, err = fleet.Node(ctx, g, "node"); err != nil {
			return f, err
		}
		on = []string{"--eventstore", "esdb+unix://" + g.Socket("node")}
	}
	if f.service, err = fleet.Serve(ctx, g, "service", "127.0.0.1:0", on...); err != nil {
		return f, err
	}
	if err = f.service.Ready(ctx); err != nil {
		return f, err
	}
	if f.office, err = f.service.Office(); err != nil {
		return f, err
	}
	return f, f.openAccounts(ctx)
}

const (
	quota   = 1_000_000_000_000
	openers = 32 // accounts that are opened at a time
)

// openAccounts opens the accounts of every course, and asks once with each, so that its book is open.
func (f *field) openAccounts(ctx context.Context) error {
	for _, accounts := range f.Accounts {
		f.Progress(fmt.Sprintf("%s, %d accounts", f.log, accounts))
		tokens := make([]string, accounts)
		var work errgroup.Group
		work.SetLimit(openers)
		for i := range tokens {
			work.Go(func() error {
				id := fmt.Sprintf("of-%d-%d", accounts, i)
				if err := f.office.Open(ctx, id, plan.Business, quota); err != nil {
					return err
				}
				key, err := f.office.Key(ctx, id, "contest")
				tokens[i] = key.Token
				return err
			})
		}
		if err := work.Wait(); err != nil {
			return err
		}
		for _, path := range f.Paths {
			c := course{path: path, accounts: accounts}
			for _, token := range tokens {
				c.requests = append(c.requests, caller.Request(f.service.API, server.Base+path, token))
			}
			if err := warm(ctx, f.service.API, c.requests); err != nil {
				return err
			}
			f.courses = append(f.courses, c)
		}
	}
	return nil
}

// settle waits until the read models have caught up with the turns before, so that they do not work in the empty
// handler's.
func (f *field) settle(ctx context.Context) error {
	for {
		behind, err := f.office.Behind(ctx)
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
