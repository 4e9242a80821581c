package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/address/placing"
	"lieudit/cmd/bench/measure"
)

// placingCommand counts how often sites are placed where their addresses are.
func (p program) placingCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:  "placing",
		Usage: "Place sites by addresses that are written in many ways, and count those placed far away or in another department",
		Description: `Each question becomes the address of a site in the ways people write one: in fields, all in one line, without the
commune, with the INSEE code, in capitals, the street in the second line, and with codes that contradict each other. A site
should be placed at its number or not at all, and never in another department than a typed code says: those that are
follow the table, one by one.

  D=../shared/data
  go run ./cmd/bench placing --vintage /var/tmp/bench.vintage --file $D/questions/real-rows.csv.gz \
    --file $D/ban/adresses-48.csv.gz --file $D/ban/adresses-93010-bondy.csv.gz --questions $D/questions/questions.csv

With --invented 0 the vintage holds the files alone, so that most addresses are not in it and none of those may be placed.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "questions", Required: true, Usage: "`FILE` of questions: set;kind;q;lat;lon;id;label", TakesFile: true},
			&cli.StringSliceFlag{Name: "file", Usage: "`FILE` of the base, as often as there are files", TakesFile: true},
			&cli.UintFlag{Name: "invented", Value: 1_000_000, Usage: "`HOW MANY` invented rows beside the files"},
			&cli.Uint64Flag{Name: "seed", Value: 11, Usage: "`SEED` of what is invented"},
			&cli.StringFlag{Name: "vintage", Usage: "`FILE` of the vintage to ask, built and kept where there is none", TakesFile: true},
			&cli.StringFlag{Name: "out", Usage: "write each site with its place to `FILE`", TakesFile: true},
		},
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		return placing.Run(ctx, dir, placing.Options{Files: c.StringSlice("file"), Invented: int(c.Uint("invented")), Seed: c.Uint64("seed"),
			Vintage: c.String("vintage"), Questions: c.StringSlice("questions"), Out: c.String("out")}, out)
	})
}
