package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

func (p Program) nodeCommand() *cli.Command {
	return &cli.Command{
		Name:  "node",
		Usage: "Serve a journal over EventStoreDB's protocol, for several instances of the service",
		Description: `  lieudit node --data ./lieudit-data/node
  lieudit node --data ./lieudit-data/node --listen unix:/run/lieudit.sock
  lieudit serve --eventstore 'esdb://127.0.0.1:2113?tls=false'

The protocol is spoken in the clear and without users: keep the address private.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", Value: "./lieudit-data/node", Usage: "`FOLDER` of the journal", TakesFile: true, Sources: p.EnvSource("LIEUDIT_NODE_DATA")},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:2113", Usage: "`ADDRESS`, or unix:PATH", Sources: p.EnvSource("LIEUDIT_NODE_LISTEN")},
			&cli.StringFlag{Name: "advertise", Usage: "`HOST:PORT` that clients are sent to when they ask; the address they came by when left out", Sources: p.EnvSource("LIEUDIT_NODE_ADVERTISE")},
			&cli.DurationFlag{Name: "stall", Usage: "for chaos tests: fall silent for `TIME` now and then", Hidden: true},
			&cli.DurationFlag{Name: "stall-every", Usage: "how often that begins", Value: 10 * time.Second, Hidden: true},
			p.logFlag(),
		},
		Action: p.serveJournal,
	}
}

func (p Program) serveJournal(ctx context.Context, c *cli.Command) (err error) {
	log := p.newLogger(c.String("log"))
	stall, every := c.Duration("stall"), c.Duration("stall-every")
	if stall < 0 || stall > 0 && stall >= every {
		return terminal.NewUsageError(c, "--stall must be shorter than --stall-every")
	}
	j, err := journal.Open(c.String("data"), journal.Options{Logger: log})
	if err != nil {
		return fmt.Errorf("opening the journal in %s: %w", c.String("data"), err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ln, err := node.Listen(ctx, c.String("listen"))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if err := p.PrintLine("The journal in %s is served at %s. Ctrl-C ends it.", c.String("data"), connectionString(ln.Addr())); err != nil {
		return errors.Join(err, ln.Close())
	}
	o := node.Options{Advertise: c.String("advertise"), Logger: log}
	if stall > 0 {
		o.Faults.Silence = &node.Silence{}
		defer repeatSilence(ctx, o.Faults.Silence, stall, every)()
	}
	return node.New(j, o).Serve(ctx, ln)
}

// repeatSilence makes a node fall silent every so often until it is told to stop.
func repeatSilence(ctx context.Context, s *node.Silence, length, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var repeating sync.WaitGroup
	repeating.Go(func() { s.Repeat(ctx, length, every) })
	return func() {
		cancel()
		repeating.Wait()
	}
}

// connectionString is what a service is given to connectionString a node.
func connectionString(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return fmt.Sprintf("esdb://%s?tls=false", a)
}
