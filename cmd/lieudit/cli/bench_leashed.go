package cli

import (
	"context"
	"io"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/harness"
)

// childCommand runs another command for as long as its standard input lasts: so no process that a measurement starts
// outlives it, even when that is killed.
func (p Program) childCommand() *cli.Command {
	return &cli.Command{
		Name: harness.ChildCommand[1], Usage: "Run a command until standard input ends", ArgsUsage: "COMMAND...",
		Hidden: true, SkipFlagParsing: true,
		Action: func(ctx context.Context, c *cli.Command) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() { // ends with its input, which is the life of the process
				io.Copy(io.Discard, p.In)
				cancel()
			}()
			return p.rootCommand().Run(ctx, append([]string{"lieudit"}, c.Args().Slice()...))
		},
	}
}
