package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/bench/address"
	"lieudit/cmd/bench/address/accuracy"
	"lieudit/cmd/bench/address/keystrokes"
	"lieudit/cmd/bench/measure"
	lieuditcli "lieudit/cmd/lieudit/cli"
	"lieudit/cmd/lieudit/service"
	"lieudit/cmd/terminal"
)

const addressDescription = `Each size is invented and built, then every operation is asked about random rows of it: in the engine on one
processor, and over HTTP on all of them, the clients on the same machine. With real files it is also counted how often
an address is found that was damaged in so many ways; with Meilisearch the same is asked of it. It leaves nothing behind.
A vintage takes 60 bytes a row of --dir, three times that while it is built.

  go run ./cmd/bench address
  go run ./cmd/bench address --sizes 10k,100k,1M,10M,26M --dir /var/tmp --json
  go run ./cmd/bench address --file adresses-48.csv.gz --meilisearch http://KEY@127.0.0.1:7700

With --questions a vintage is built of all files and of invented rows, and stored questions are asked of it. Their answers
are judged. --absent asks for addresses that the vintage does not have, --exact for its own in many writings. --vintage
keeps the vintage, and the next run starts at once. --peer reads what --out wrote, of an earlier run or another geocoder.
With --meilisearch the same questions are asked of it, with --peer-url of an addok; --out then writes a second file,
meilisearch-FILE or addok-FILE.
On the data set for tests:

  D=../shared/data
  go run ./cmd/bench address --vintage /var/tmp/bench.vintage --file $D/questions/real-rows.csv.gz \
    --file $D/ban/adresses-48.csv.gz --file $D/ban/adresses-93010-bondy.csv.gz \
    --questions $D/questions/questions.csv --absent 4000 --exact 400 --out results.csv

With --keystrokes rows of the files are typed letter by letter in several ways, and suggestions are asked for after each
key: without a position, and with one 2 km from the address. Counted are the keys until the address is among them, lists
without any, and addresses that are lost again. --out lists what went wrong. --peer-url asks an addok the same.

  go run ./cmd/bench address --vintage /var/tmp/bench.vintage --file $D/questions/real-rows.csv.gz \
    --file $D/ban/adresses-48.csv.gz --file $D/ban/adresses-93010-bondy.csv.gz \
    --keystrokes 200 --peer-url http://127.0.0.1:7878`

// addressCommand measures the address engine: its speed, or with the flags of accuracyFlags how often it is right and how soon it
// completes what is typed.
func (p program) addressCommand() *cli.Command {
	return p.newFigureCommand(&cli.Command{
		Name:        "address",
		Usage:       "Measure the address engine and its API on invented vintages of several sizes, or on real files; count right answers",
		Description: addressDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "sizes", Value: "10k,100k,1M", Usage: "`ROWS` of each vintage, k and M for thousands and millions", Validator: validateParsed(parseSizes)},
			&cli.StringSliceFlag{Name: "file", Usage: "`FILE` of the base to measure instead, as often as there are files", TakesFile: true},
			&cli.IntFlag{Name: "damaged", Value: 400, Usage: "`HOW MANY` damaged addresses of each kind, with --file", Validator: terminal.AtLeastOne},
			p.StringFlag("meilisearch", "", "Meilisearch to measure beside, as `http://KEY@HOST:PORT`"),
			&cli.DurationFlag{Name: "turn", Value: 2 * time.Second, Usage: "`TIME` for each figure"},
			&cli.IntFlag{Name: "connections", Value: 16, Usage: "`HOW MANY` clients over HTTP", Validator: terminal.AtLeastOne},
		}, accuracyFlags()...),
	}, func(ctx context.Context, c *cli.Command, dir string, out measure.Output) error {
		chosen, err := chooseAddressRun(c)
		if err != nil {
			return err
		}
		// The flag is checked as the service checks it, before anything is built.
		server := lieuditcli.MeilisearchURL(c, p.LookupEnv)
		if err := lieuditcli.ValidateMeilisearch(c, service.Config{Meilisearch: server}); err != nil {
			return err
		}
		switch chosen {
		case accuracyRun:
			return accuracy.Run(ctx, dir, newAccuracyOptions(c, server), out)
		case keystrokesRun:
			return keystrokes.Run(ctx, dir, keystrokes.Options{
				Options: newAccuracyOptions(c, ""), Addresses: c.Int("keystrokes"), Peer: c.String("peer-url"),
			}, out)
		}
		o := address.Options{FigureDuration: c.Duration("turn"), Connections: c.Int("connections"),
			Files: c.StringSlice("file"), Questions: c.Int("damaged"), Meilisearch: server}
		o.Sizes, _ = parseSizes(c.String("sizes")) // the flag's validator has read them
		return address.Run(ctx, dir, o, out)
	})
}

// accuracyFlags are the flags of packages accuracy and keystrokes. --file is shared with the measurement of speed.
func accuracyFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "questions", Usage: "`FILE` of questions to ask: set;kind;q;lat;lon;id;label", TakesFile: true},
		&cli.IntFlag{Name: "absent", Usage: "`HOW MANY` addresses to ask for that the vintage does not have", Validator: terminal.AtLeastOne},
		&cli.IntFlag{Name: "exact", Usage: "`HOW MANY` addresses of the vintage to ask for in each kind of writing and damage", Validator: terminal.AtLeastOne},
		&cli.IntFlag{Name: "keystrokes", Usage: "`HOW MANY` addresses of the files to type letter by letter in each way of writing", Validator: terminal.AtLeastOne},
		&cli.UintFlag{Name: "invented", Value: 1_000_000, Usage: "`HOW MANY` invented rows beside the files"},
		&cli.Uint64Flag{Name: "seed", Value: 11, Usage: "`SEED` of what is invented and drawn"},
		&cli.StringFlag{Name: "vintage", Usage: "`FILE` of the vintage to ask, built and kept where there is none", TakesFile: true},
		&cli.StringFlag{Name: "out", Usage: "write each question with its answer to `FILE`", TakesFile: true},
		&cli.StringFlag{Name: "peer", Usage: "`FILE` of such results to compare with", TakesFile: true},
		&cli.StringFlag{Name: "peer-url", Usage: "`URL` of an addok that is filled with the same rows, to ask the same"},
	}
}

// newAccuracyOptions turns the flags into the options of package accuracy.
func newAccuracyOptions(c *cli.Command, meilisearch string) accuracy.Options {
	return accuracy.Options{
		Meilisearch: meilisearch, Files: c.StringSlice("file"), Invented: int(c.Uint("invented")), Seed: c.Uint64("seed"), Vintage: c.String("vintage"),
		Questions: c.StringSlice("questions"), Absent: c.Int("absent"), Exact: c.Int("exact"), Out: c.String("out"), Peer: c.String("peer"), PeerURL: c.String("peer-url"),
	}
}

// addressRun is one of the three things that the command measures.
type addressRun int

const (
	speedRun addressRun = iota
	accuracyRun
	keystrokesRun
)

// addressRunFlags are the flags that choose a run, or that not every run reads, with the runs that read them.
func addressRunFlags() map[string][]addressRun {
	return map[string][]addressRun{
		"sizes": {speedRun}, "damaged": {speedRun}, "turn": {speedRun}, "connections": {speedRun},
		"questions": {accuracyRun}, "absent": {accuracyRun}, "exact": {accuracyRun}, "peer": {accuracyRun},
		"keystrokes": {keystrokesRun}, "peer-url": {accuracyRun, keystrokesRun},
		"meilisearch": {speedRun, accuracyRun},
		"invented":    {accuracyRun, keystrokesRun}, "seed": {accuracyRun, keystrokesRun}, "vintage": {accuracyRun, keystrokesRun}, "out": {accuracyRun, keystrokesRun},
	}
}

// chooseAddressRun says what is to be measured. It refuses flags that the chosen run would ignore.
func chooseAddressRun(c *cli.Command) (chosen addressRun, err error) {
	name := "--sizes" // or whatever chose another run
	for _, flag := range []string{"questions", "absent", "exact", "keystrokes"} {
		if c.IsSet(flag) {
			chosen, name = addressRunFlags()[flag][0], "--"+flag
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(addressRunFlags())) {
		if runs := addressRunFlags()[flag]; c.IsSet(flag) && !slices.Contains(runs, chosen) {
			if chosen != speedRun {
				return chosen, terminal.NewUsageError(c, "--%s does not go with %s", flag, name)
			}
			return chosen, terminal.NewUsageError(c, "--%s needs --questions, --absent, --exact or --keystrokes", flag)
		}
	}
	if chosen == keystrokesRun && !c.IsSet("file") {
		return chosen, terminal.NewUsageError(c, "--keystrokes needs --file: the rows that are typed")
	}
	return chosen, nil
}
