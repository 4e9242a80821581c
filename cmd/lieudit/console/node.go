package console

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/urfave/cli/v3"

	"lieudit/eventstore/journal"
	"lieudit/eventstore/node"
)

func (p Program) node() *cli.Command {
	return &cli.Command{
		Name:  "node",
		Usage: "Serve a journal over EventStoreDB's protocol, for several instances of the service",
		Description: `  lieudit node --data ./lieudit-data/node
  lieudit node --data ./lieudit-data/node --listen unix:/run/lieudit.sock
  lieudit serve --eventstore 'esdb://127.0.0.1:2113?tls=false'

The protocol is spoken in the clear and without users: keep the address private.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", Value: "./lieudit-data/node", Usage: "`FOLDER` of the journal", TakesFile: true, Sources: p.from("LIEUDIT_NODE_DATA")},
			&cli.StringFlag{Name: "listen", Value: "127.0.0.1:2113", Usage: "`ADDRESS`, or unix:PATH", Sources: p.from("LIEUDIT_NODE_LISTEN")},
			&cli.StringFlag{Name: "advertise", Usage: "`HOST:PORT` that clients are sent to when they ask; the address they came by when left out", Sources: p.from("LIEUDIT_NODE_ADVERTISE")},
			p.logFlag(),
		},
		Action: p.serveJournal,
	}
}

func (p Program) serveJournal(ctx context.Context, c *cli.Command) (err error) {
	log := p.logger(c.String("log"))
	j, err := journal.Open(c.String("data"), journal.Options{Logger: log})
	if err != nil {
		return fmt.Errorf("opening the journal in %s: %w", c.String("data"), err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	ln, err := node.Listen(ctx, c.String("listen"))
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if err := p.say("The journal in %s is served at %s. Ctrl-C ends it.", c.String("data"), reach(ln.Addr())); err != nil {
		return errors.Join(err, ln.Close())
	}
	return node.New(j, node.Options{Advertise: c.String("advertise"), Logger: log}).Serve(ctx, ln)
}

// reach is what a service is given to reach a node.
func reach(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return fmt.Sprintf("esdb://%s?tls=false", a)
}
