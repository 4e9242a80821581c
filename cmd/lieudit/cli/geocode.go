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
	"lieudit/http/sitefile/record"
	"lieudit/queries/address"
	"lieudit/queries/address/commune"
)

// geocodeCommand is lieudit geocode: a csvgeocode.Job on the current vintage of the data folder. To geocode is to find the
// address and the position of a text. The command needs no running service and counts no requests.
func (p Program) geocodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "geocode",
		Usage:     "Verify the addresses of a CSV file on the vintage of the data folder",
		ArgsUsage: "FILE",
		Description: `The file is written again, in its own encoding, with the result beside each row: result_label, result_score,
result_resout (whether it can be taken without asking anybody), result_motif (why not), result_status and so on. The columns that hold the address are found by their names and contents, as lieudit sites import finds
them, and are named before the first row is verified; --columns says it better where that is wrong.
Run it again after an interruption, of whatever kind, and it goes on where it was.

  lieudit geocode customers.csv
  lieudit geocode clients.csv --columns adresse,ville --postcode cp --prefix ban_ --out placed.csv`,
		Flags: []cli.Flag{
			p.dataFlag(),
			&cli.StringSliceFlag{Name: "columns", Usage: "`COLUMNS` that hold the address, in order; found out when left out"},
			&cli.StringFlag{Name: "postcode", Usage: "`COLUMN` with a postcode that the answer must have"},
			&cli.StringFlag{Name: "citycode", Usage: "`COLUMN` with a commune's code (INSEE) that the answer must have"},
			&cli.StringFlag{Name: "repli", Value: "aucun", Usage: "`ANSWER` where the address is not found: aucun (none), or commune: the commune that was typed", Validator: terminal.OneOf("aucun", "commune")},
			&cli.BoolFlag{Name: "expliquer", Usage: "say in the column motif why an address is not found, such as hors_couverture: no row of its commune is loaded"},
			&cli.StringFlag{Name: "out", Usage: "`FILE` for the result; FILE.geocoded.csv when left out", TakesFile: true},
			&cli.StringFlag{Name: "prefix", Usage: "`TEXT` that begins the names of the result's columns; result_ or, beside earlier results, result2_ when left out", Validator: validatePrefix},
			&cli.StringFlag{Name: "separator", Usage: "`SIGN` between fields; found out when left out", Validator: validateSeparator},
			&cli.StringFlag{Name: "encoding", Usage: "`ENCODING` of file and result: " + strings.Join(record.Encodings(), ", ") + "; found out when left out", Validator: terminal.OneOf(record.Encodings()...)},
			&cli.BoolFlag{Name: "restart", Usage: "begin again in spite of an unfinished run"},
			&cli.BoolFlag{Name: "json", Usage: "print the counts, and which columns hold what, as JSON"},
		},
		Action: p.geocodeFile,
	}
}

// validateSeparator is the validator of --separator: one character that CSV can have between fields.
func validateSeparator(text string) error {
	if utf8.RuneCountInString(text) != 1 || strings.ContainsAny(text, "\"\r\n") {
		return errors.New("it is one sign such as ; or ,")
	}
	return nil
}

// validatePrefix is the validator of --prefix: a text that can begin a name on one line.
func validatePrefix(text string) error {
	if text == "" || strings.TrimSpace(text) != text || strings.ContainsAny(text, "\"\r\n") {
		return errors.New("it is a text without spaces around it, such as ban_")
	}
	return nil
}

// geocodeFile opens the current vintage and runs the job that the flags describe on it. Without --out the result lies next to
// the input. On invented addresses it prints a warning, since the results look like real ones.
func (p Program) geocodeFile(ctx context.Context, c *cli.Command) (err error) {
	engine, name, closeVintage, err := openEngine(c.String("data"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeVintage()) }()
	if engine.Vintage().Synthetic {
		// A warning, on standard error: the command continues.
		p.PrintError("the addresses of this vintage are SYNTHETIC: lieudit ban import FILE loads real ones")
	}
	// The name of the vintage is part of the job: a run that is resumed must not mix results of two vintages.
	job := csvgeocode.Job{
		In: c.Args().First(), Out: c.String("out"), Columns: c.StringSlice("columns"), Postcode: c.String("postcode"), CityCode: c.String("citycode"),
		Encoding: strings.ToLower(c.String("encoding")), Prefix: c.String("prefix"), Fallback: strings.EqualFold(c.String("repli"), "commune"),
		Explain: c.Bool("expliquer"), Restart: c.Bool("restart"), Engine: engine, Vintage: name,
	}
	if separator := c.String("separator"); separator != "" { // one character, as validateSeparator demands
		job.Separator, _ = utf8.DecodeRuneInString(separator)
	}
	if job.Out == "" {
		job.Out = strings.TrimSuffix(job.In, filepath.Ext(job.In)) + ".geocoded.csv"
	}
	return p.runGeocode(ctx, c, job)
}

// runGeocode runs a job with a progress bar and prints its counts. After an error it says how many rows are kept, because
// the same command continues from there. The bar compares bytes of text with the size of the file: for
// UTF-16 it runs behind.
func (p Program) runGeocode(ctx context.Context, c *cli.Command, job csvgeocode.Job) error {
	info, err := os.Stat(job.In)
	if err != nil {
		return err
	}
	bar, startedAt := p.NewProgressBar(), time.Now()
	job.Progress = func(counts csvgeocode.Counts, read int64) {
		bar.Update(terminal.GroupThousands(counts.Rows)+" rows", read, info.Size())
	}
	var layout csvgeocode.Layout
	job.Start = func(found csvgeocode.Layout) {
		layout = found
		p.printLayout(found)
	}
	counts, err := job.Run(ctx)
	bar.Clear()
	if err != nil {
		if counts.Rows > 0 {
			p.PrintError(terminal.GroupThousands(counts.Rows) + " rows are done; the same command goes on from there")
		}
		return explainGeocodeError(c, err)
	}
	if c.Bool("json") {
		return p.PrintJSON(struct {
			csvgeocode.Counts
			Out    string            `json:"fichier"`
			Layout csvgeocode.Layout `json:"trouve"`
		}{counts, job.Out, layout})
	}
	return p.PrintFields("rows", terminal.GroupThousands(counts.Rows), "exact", formatShare(counts.Exact, counts.Rows), "probable", formatShare(counts.Probable, counts.Rows),
		"commune alone", terminal.EmptyIf(counts.CommuneOnly == 0, formatShare(counts.CommuneOnly, counts.Rows)), "not found", formatShare(counts.NotFound, counts.Rows),
		"without address", terminal.EmptyIf(counts.Skipped == 0, formatShare(counts.Skipped, counts.Rows)), "not text", terminal.EmptyIf(counts.Errors == 0, formatShare(counts.Errors, counts.Rows)+"; --encoding says another than "+layout.Encoding),
		"time", time.Since(startedAt).Round(time.Millisecond).String(), "result", job.Out)
}

// columnUses are what the columns of an address hold, as it is printed. The keys are the values of csvgeocode.Column.Use.
var columnUses = map[string]string{
	"numero": "house number", "rep": "suffix", "type_voie": "type of street", "nom_voie": "street", "ligne_1": "street line",
	"ligne_2": "complement", "code_postal": "postcode", "commune": "commune", "code_insee": "INSEE code", csvgeocode.AddressText: "address",
	csvgeocode.PostcodeFilter: "postcode that the answer must have", csvgeocode.CityCodeFilter: "INSEE code that the answer must have",
}

// printLayout prints on standard error, which is not the command's data, what is read of a file and what is written.
func (p Program) printLayout(found csvgeocode.Layout) {
	var columns []string
	for _, c := range found.Columns {
		text := c.Name + " (" + columnUses[c.Use]
		if !c.IsByName {
			text += ", by its content"
		}
		if c.IsFallback {
			text += ", where the other is empty"
		}
		columns = append(columns, text+")")
	}
	lines := []string{"address: " + strings.Join(columns, ", "),
		fmt.Sprintf("read and written as %s, separated by %q", found.Encoding, found.Separator)}
	if found.Prefix != csvgeocode.DefaultPrefix {
		lines = append(lines, "the result's columns begin with "+found.Prefix+"; those that the file has stay as they are")
	}
	for _, line := range lines {
		fmt.Fprintln(p.Err, terminal.SanitizeText(line))
	}
}

// explainGeocodeError adds to an error of a run what can be done about it. An unknown column is wrong usage: the columns
// are named by flags.
func explainGeocodeError(c *cli.Command, err error) error {
	if column, ok := errors.AsType[*csvgeocode.ColumnError](err); ok {
		return terminal.NewUsageError(c, "%v", column)
	}
	if none, ok := errors.AsType[*csvgeocode.NoAddressError](err); ok {
		return terminal.NewUsageError(c, "%v; name those of the address with --columns", none)
	}
	switch {
	case errors.Is(err, csvgeocode.ErrResultExists):
		return fmt.Errorf("%w: remove it, or name another file with --out", err)
	case errors.Is(err, csvgeocode.ErrRunMismatch), errors.Is(err, csvgeocode.ErrRunDamaged):
		return fmt.Errorf("%w: --restart begins again", err)
	}
	return err
}

// formatShare formats a count with its share of a total in percent: "12 (3.4 %)". Without a total it is the count alone.
func formatShare(n, total int) string {
	if total == 0 {
		return terminal.GroupThousands(n)
	}
	return fmt.Sprintf("%s (%.1f %%)", terminal.GroupThousands(n), 100*float64(n)/float64(total))
}

// openEngine opens an engine, which finds addresses, on the current vintage of a data folder. name is that of the vintage.
// The caller calls closeVintage when no query runs any more. Without a vintage the error is errNoVintage.
func openEngine(data string) (_ *address.Engine, name string, closeVintage func() error, err error) {
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
