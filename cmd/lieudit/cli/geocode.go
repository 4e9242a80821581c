package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/csvgeocode"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/cmd/terminal"
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
)

// geocodeCommand is lieudit geocode: a csvgeocode.Job on the current vintage of the data folder. It needs no running
// service.
func (p Program) geocodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "geocode",
		Usage:     "Verify the addresses of a CSV file on the vintage of the data folder",
		ArgsUsage: "FILE",
		Description: `The file is written again with the result beside each row: result_label, result_score, result_status and so on.
Run it again after an interruption, of whatever kind, and it goes on where it was.

  lieudit geocode customers.csv --columns street,postcode,city
  lieudit geocode clients.csv --columns adresse,ville --postcode cp --encoding windows-1252 --out placed.csv`,
		Flags: []cli.Flag{
			p.dataFlag(),
			&cli.StringSliceFlag{Name: "columns", Usage: "`COLUMNS` that hold the address, in order; all when left out"},
			&cli.StringFlag{Name: "postcode", Usage: "`COLUMN` with a postcode that the answer must have"},
			&cli.StringFlag{Name: "citycode", Usage: "`COLUMN` with a commune's code (INSEE) that the answer must have"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` for the result; FILE.geocoded.csv when left out", TakesFile: true},
			&cli.StringFlag{Name: "separator", Usage: "`SIGN` between fields; the one the header has when left out", Validator: validateSeparator},
			&cli.StringFlag{Name: "encoding", Value: csvgeocode.UTF8, Usage: "`ENCODING` of the file: utf-8 or windows-1252 (Latin-1)", Validator: terminal.OneOf(csvgeocode.UTF8, csvgeocode.Windows1252)},
			&cli.BoolFlag{Name: "restart", Usage: "begin again in spite of an unfinished run"},
			&cli.BoolFlag{Name: "json", Usage: "print the counts as JSON"},
		},
		Action: p.geocodeFile,
	}
}

func validateSeparator(text string) error {
	if utf8.RuneCountInString(text) != 1 || strings.ContainsAny(text, "\"\r\n") {
		return errors.New("it is one sign such as ; or ,")
	}
	return nil
}

func (p Program) geocodeFile(ctx context.Context, c *cli.Command) (err error) {
	engine, name, end, err := openEngine(c.String("data"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if engine.Vintage().Synthetic {
		p.PrintError("the addresses of this vintage are SYNTHETIC: lieudit ban import FILE loads real ones")
	}
	job := csvgeocode.Job{
		In: c.Args().First(), Out: c.String("out"), Columns: c.StringSlice("columns"), Postcode: c.String("postcode"), CityCode: c.String("citycode"),
		Encoding: strings.ToLower(c.String("encoding")), Restart: c.Bool("restart"), Engine: engine, Vintage: name,
	}
	if sign := c.String("separator"); sign != "" {
		job.Separator, _ = utf8.DecodeRuneInString(sign)
	}
	if job.Out == "" {
		job.Out = strings.TrimSuffix(job.In, filepath.Ext(job.In)) + ".geocoded.csv"
	}
	return p.runGeocode(ctx, c, job)
}

// runGeocode runs a job with a progress bar and prints its counts. After an error it says how many rows are kept.
func (p Program) runGeocode(ctx context.Context, c *cli.Command, job csvgeocode.Job) error {
	info, err := os.Stat(job.In)
	if err != nil {
		return err
	}
	bar, startedAt := p.NewProgressBar(), time.Now()
	job.Progress = func(t csvgeocode.Counts, read int64) {
		bar.Update(terminal.GroupThousands(t.Rows)+" rows", read, info.Size())
	}
	t, err := job.Run(ctx)
	bar.Clear()
	if err != nil {
		if t.Rows > 0 {
			p.PrintError(terminal.GroupThousands(t.Rows) + " rows are done; the same command goes on from there")
		}
		return explainGeocodeError(c, err)
	}
	if c.Bool("json") {
		return p.PrintJSON(struct {
			csvgeocode.Counts
			Out string `json:"fichier"`
		}{t, job.Out})
	}
	return p.PrintFields("rows", terminal.GroupThousands(t.Rows), "exact", formatShare(t.Exact, t.Rows), "probable", formatShare(t.Probable, t.Rows), "not found", formatShare(t.NotFound, t.Rows),
		"without address", terminal.EmptyIf(t.Skipped == 0, formatShare(t.Skipped, t.Rows)), "not text", terminal.EmptyIf(t.Errors == 0, formatShare(t.Errors, t.Rows)+"; files of Excel want --encoding "+csvgeocode.Windows1252),
		"time", time.Since(startedAt).Round(time.Millisecond).String(), "result", job.Out)
}

// explainGeocodeError adds to an error of a run what can be done about it. An unknown column is wrong usage.
func explainGeocodeError(c *cli.Command, err error) error {
	if column, ok := errors.AsType[*csvgeocode.ColumnError](err); ok {
		return terminal.NewUsageError(c, "%v", column)
	}
	switch {
	case errors.Is(err, csvgeocode.ErrResultExists):
		return fmt.Errorf("%w: remove it, or name another file with --out", err)
	case errors.Is(err, csvgeocode.ErrRunMismatch):
		return fmt.Errorf("%w: --restart begins again", err)
	}
	return err
}

// formatShare is a count with its share of a total.
func formatShare(n, total int) string {
	if total == 0 {
		return terminal.GroupThousands(n)
	}
	return fmt.Sprintf("%s (%.1f %%)", terminal.GroupThousands(n), 100*float64(n)/float64(total))
}

// openEngine opens an engine on the current vintage of a data folder. End closes the vintage.
func openEngine(data string) (_ *address.Engine, name string, end func() error, err error) {
	folder := vintages.FolderIn(data)
	if name, err = folder.Current(); err == nil && name == "" {
		err = errNoVintage
	}
	if err != nil {
		return nil, "", nil, err
	}
	communes, err := commune.Load()
	if err != nil {
		return nil, "", nil, err
	}
	v, err := folder.Open(name)
	if err != nil {
		return nil, "", nil, err
	}
	return address.New(v, communes), name, v.Close, nil
}
