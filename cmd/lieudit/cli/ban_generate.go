package cli

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/terminal"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/specimen"
)

func (p Program) banGenerateCommand() *cli.Command {
	return &cli.Command{
		Name:  "generate",
		Usage: "Write invented addresses in the official format, for tests and measurements",
		Description: `Communes and postcodes are real, streets, numbers and lieux-dits are not; every row says so and the service
shows it. The same count and seed give the same bytes.

  lieudit ban generate --addresses 100000 --out specimen.csv.gz
  lieudit ban generate --addresses 26000000 --seed 7 --out - | gzip >france.csv.gz`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "addresses", Value: 100_000, Usage: "`HOW MANY` rows", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`NUMBER` that decides what is invented"},
			&cli.StringFlag{Name: "out", Required: true, Usage: "`FILE`, compressed when it ends in .gz; - for standard output", TakesFile: true},
		},
		Action: p.generateAddresses,
	}
}

func (p Program) generateAddresses(ctx context.Context, c *cli.Command) (err error) {
	communes, err := commune.Load()
	if err != nil {
		return err
	}
	out, err := p.openOutput(c.String("out"))
	if err != nil {
		return err
	}
	total, bar := c.Int("addresses"), p.NewProgressBar()
	err = specimen.Write(ctx, out, communes, specimen.Order{Addresses: total, Seed: c.Uint64("seed"), Progress: func(rows int) {
		bar.Update(fmt.Sprintf("%s of %s rows", terminal.GroupThousands(rows), terminal.GroupThousands(total)), int64(rows), int64(total))
	}})
	bar.Clear()
	return out.finish(err)
}

// outputFile is a file that appears whole or not at all, or standard outputFile.
type outputFile struct {
	io.Writer
	finish func(error) error // ends it, well or with an error
}

func (p Program) openOutput(name string) (*outputFile, error) {
	if name == "-" {
		return &outputFile{p.Out, func(err error) error { return err }}, nil
	}
	file, err := os.Create(name + ".part")
	if err != nil {
		return nil, err
	}
	o := &outputFile{Writer: file, finish: func(err error) error {
		if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
			err = os.Rename(file.Name(), name)
		}
		if err != nil {
			os.Remove(file.Name()) // the first error is the one to tell
		}
		return err
	}}
	if !strings.HasSuffix(name, ".gz") {
		return o, nil
	}
	compressed, finishFile := gzip.NewWriter(file), o.finish
	return &outputFile{compressed, func(err error) error { return finishFile(errors.Join(err, compressed.Close())) }}, nil
}
