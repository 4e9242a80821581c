package cli

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/releases"
	"lieudit/cmd/lieudit/vintages"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/disk/dirlock"
	"lieudit/eventstore/disk/osfile"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/address/vintage"
)

// banCommand groups the commands on the vintages of a data folder. A vintage is one release of the address base, the Base
// Adresse Nationale (BAN), as an index file. The commands need no running service; one that runs on the folder takes an
// import over.
func (p Program) banCommand() *cli.Command {
	return terminal.NewGroup("ban", "The address base: import a vintage, see what is served, invent one", p.banImportCommand(), p.banStatusCommand(),
		p.newServeCommand("vintage", func(ctx context.Context, c *cli.Command) error {
			return serveRelease(ctx, p, c, vintages.FolderIn(c.String("data")))
		}), p.banGenerateCommand())
}

// banImportCommand is lieudit ban import: vintages.Import on the data folder. The millésime is the date of the data.
func (p Program) banImportCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "Build a vintage of the address base from its official files and serve it",
		ArgsUsage: "FILE|URL...",
		Description: `The files are the CSV of the Base Adresse Nationale, plain or gzip, of France or of departments, and the files of
lieux-dits. All of them together are the new vintage. A running service takes it over without a pause, and
all other instances on its log fetch it; if anything fails, it stays with the one before. Bad rows are left out, counted, and the first of them named.

  lieudit ban import adresses-48.csv.gz lieux-dits-48-beta.csv.gz
  lieudit ban import https://adresse.data.gouv.fr/data/ban/adresses/latest/csv/adresses-france.csv.gz

A finished vintage of another instance (lieudit ban status names its file) is taken over as it is:

  lieudit ban import https://files.example.org/2026-11.vintage --sha256 SUM`,
		Flags: []cli.Flag{
			p.dataFlag(),
			&cli.StringFlag{Name: "millesime", Usage: "`DATE` of the data; else a date in a file's name, else a file's own", Validator: validateDate},
			&cli.StringFlag{Name: "sha256", Usage: "`SUM` of a finished vintage (lieudit ban status --sha256)"},
			&cli.BoolFlag{Name: "fresh", Usage: "carry no id_ban over from the current vintage"},
			&cli.BoolFlag{Name: "json", Usage: "print the result as JSON"},
		},
		Action: p.importVintage,
	}
}

// validateDate is the validator of a flag that holds a date such as 2026-11-21.
func validateDate(text string) error {
	if _, err := time.Parse(time.DateOnly, text); err != nil {
		return errors.New("it is a date such as 2026-11-21")
	}
	return nil
}

// importVintage builds or copies a vintage from the sources and makes it the current one. It returns when the running
// service and all other instances answer from it, or at once if no service runs. It lowers the priority of the whole
// process, which does nothing else, so that a service on this machine is not slowed down.
func (p Program) importVintage(ctx context.Context, c *cli.Command) (err error) {
	sources, err := vintages.OpenSources(ctx, c.Args().Slice())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sources.Close()) }()
	if p.LowerPriority != nil {
		p.LowerPriority()
	}
	bar := p.NewProgressBar()
	i := vintages.Import{
		Folder: vintages.FolderIn(c.String("data")), Sources: sources, Millesime: c.String("millesime"), SHA256: c.String("sha256"),
		Fresh: c.Bool("fresh"), Now: time.Now(), Progress: newImportProgress(bar, sources),
	}
	if i.Millesime == "" { // the data itself holds no date
		var isFileDate bool
		i.Millesime, isFileDate = sources.Date()
		if isFileDate && i.SHA256 == "" { // a finished vintage brings its own
			fmt.Fprintf(p.Err, "warning: the millésime %s is the file's own date, since its name holds none; --millesime DATE sets it\n", i.Millesime)
		}
	}
	name, summary, err := i.Run(ctx)
	bar.Clear()
	if err != nil {
		return explainImportError(err)
	}
	taken, err := awaitTakeover(ctx, i.Folder, name)
	if err != nil {
		return err
	}
	return errors.Join(p.printImport(c, importResult{name, summary, &sources.Report, taken}), taken.err())
}

// newImportProgress returns the function that an import calls with its stage and progress. In the stage "read" a bar shows
// how many bytes of the sources are read, after it how many of the good rows are built into addresses.
func newImportProgress(bar *terminal.ProgressBar, sources *vintages.Sources) func(string, int, int) {
	return func(stage string, done, total int) {
		switch stage {
		case "read":
			bar.Update(fmt.Sprintf("reading, %s rows", terminal.GroupThousands(done)), sources.BytesRead.Load(), sources.TotalBytes)
		default:
			bar.Update(fmt.Sprintf("building, %s of %s addresses", terminal.GroupThousands(done), terminal.GroupThousands(max(sources.Report.Good, done))), int64(done), int64(sources.Report.Good))
		}
	}
}

// explainImportError adds to an error of an import what can be done about it. Any other error is returned as
// it is.
func explainImportError(err error) error {
	if _, ok := errors.AsType[*vintages.UnreadableCurrentError](err); ok {
		return fmt.Errorf("%w\nto replace it all the same: --fresh", err)
	}
	if held, ok := errors.AsType[*dirlock.HeldError](err); ok {
		return fmt.Errorf("another import is at work: %w", held)
	}
	// Without --sha256 a finished vintage has no sum to compare: it is taken over only by a sum that its maker gave.
	if sum, ok := errors.AsType[*releases.ChecksumError](err); ok && sum.Want == "" {
		return errors.New("a finished vintage is imported with its SHA-256: --sha256 SUM (lieudit ban status --sha256 prints it where it was built)")
	}
	if osfile.IsDiskFull(err) {
		return errors.New("the disk is full: while a vintage is built it takes some 200 bytes a row beside the current one; nothing was changed")
	}
	return err
}

// importResult is the result of an import, in the form in which it is printed.
type importResult struct {
	name string // of the new vintage
	vintage.Summary
	report *ban.Report // rows read, and those left out with their reasons
	taken  takeover
}

// printImport prints the result of an import: with --json as one JSON object, otherwise the counts, the first bad rows and
// whether a service answers from the vintage. It leaves out counts that only matter if they are not zero.
func (p Program) printImport(c *cli.Command, r importResult) error {
	if c.Bool("json") {
		return p.PrintJSON(r.jsonBody())
	}
	err := p.PrintFields("millésime", r.Millesime, "addresses", terminal.GroupThousands(r.Addresses), "streets", terminal.GroupThousands(r.Streets), "lieux-dits", terminal.GroupThousands(r.Localities),
		"communes", terminal.GroupThousands(r.Communes), "size", terminal.FormatBytes(r.Bytes), "invented", syntheticNotice(r.Synthetic),
		"id_ban kept", terminal.EmptyIf(r.Inherited == 0, terminal.GroupThousands(r.Inherited)+" of addresses whose id has changed"),
		"repeated ids", terminal.EmptyIf(r.Duplicates == 0, terminal.GroupThousands(r.Duplicates)+" rows left out"),
		"mended", terminal.EmptyIf(r.report.Repaired == 0, terminal.GroupThousands(r.report.Repaired)+" rows whose letters were encoded twice"), "left out", r.describeBadRows())
	if err != nil {
		return err
	}
	// Their number is bounded by the report: a file of another kind would print every row.
	for _, bad := range r.report.First {
		if err := p.PrintLine("  %s", terminal.SanitizeText(bad.String())); err != nil {
			return err
		}
	}
	return r.taken.print(p)
}

// describeBadRows tells how many rows were left out, in all and for each reason. It returns "" if there are none.
func (r importResult) describeBadRows() string {
	var why []string
	for fault, n := range r.report.Faults {
		why = append(why, fmt.Sprintf("%s %s", terminal.GroupThousands(n), fault))
	}
	if why == nil {
		return ""
	}
	return fmt.Sprintf("%s bad rows (%s)", terminal.GroupThousands(r.report.Bad()), strings.Join(why, ", "))
}

// jsonBody is the result as --json prints it. Its keys are French, as those of the API.
func (r importResult) jsonBody() any {
	return struct {
		Name string `json:"nom"`
		vintage.Meta
		Bytes      int64        `json:"octets"`
		Inherited  int          `json:"id_ban_repris"`
		Duplicates int          `json:"doublons"`
		Mended     int          `json:"lignes_reparees"`
		Bad        int          `json:"lignes_ecartees"`
		First      []ban.BadRow `json:"premieres,omitempty"`
		Served     bool         `json:"servi"`
		takeoverJSON
	}{r.name, r.Meta, r.Bytes, r.Inherited, r.Duplicates, r.report.Repaired, r.report.Bad(), slices.Clip(r.report.First), r.taken.isServed, r.taken.json()}
}

// banStatusCommand is lieudit ban status. It reads the data folder, whether a service runs or not.
func (p Program) banStatusCommand() *cli.Command {
	return p.newStatusCommand("Show the current vintage: millésime, counts, size, age", p.printVintageStatus)
}

// vintageStatus is the current vintage of a data folder, as --json prints it.
type vintageStatus struct {
	releaseStatus
	vintage.Meta
}

// errNoVintage says that the data folder never had a vintage. One that lost its vintage is a *releases.LostError.
var errNoVintage = errors.New("there is no vintage in this data folder yet: lieudit ban import FILE")

// printVintageStatus prints the current vintage. It reads the header of the file and not all of it, so a damaged one may look
// right. The checksum is computed only with --sha256, since it reads the whole file.
func (p Program) printVintageStatus(_ context.Context, c *cli.Command) error {
	folder := vintages.FolderIn(c.String("data"))
	v, name, err := openCurrent(folder, errNoVintage)
	if err != nil {
		return err
	}
	defer v.Close()
	s := vintageStatus{Meta: v.Meta}
	if s.releaseStatus, err = readReleaseStatus(folder, name, v.File, c.Bool("sha256")); err != nil {
		return err
	}
	if c.Bool("json") {
		return p.PrintJSON(s)
	}
	fields := []string{"millésime", s.Millesime, "addresses", terminal.GroupThousands(s.Addresses), "streets", terminal.GroupThousands(s.Streets),
		"lieux-dits", terminal.GroupThousands(s.Localities), "communes", terminal.GroupThousands(s.Communes), "invented", syntheticNotice(s.Synthetic)}
	return p.printStatus(fields, s.releaseStatus)
}

// syntheticNotice says that addresses are invented; "" when they are not. Everything that prints a vintage shows it, so that
// nobody takes invented addresses for real ones.
func syntheticNotice(synthetic bool) string {
	return terminal.EmptyIf(!synthetic, "SYNTHETIC: streets and numbers that exist nowhere")
}

// banGenerateCommand is lieudit ban generate: synthetic.Write, which invents addresses. It needs neither a data folder nor a
// service.
func (p Program) banGenerateCommand() *cli.Command {
	return &cli.Command{
		Name:  "generate",
		Usage: "Write invented addresses in the official format, for tests and measurements",
		Description: `Communes and postcodes are real, streets, numbers and lieux-dits are not; every row says so and the service
shows it. The same count and seed give the same bytes.

  lieudit ban generate --addresses 100000 --out synthetic.csv.gz
  lieudit ban generate --addresses 26000000 --seed 7 --out - | gzip >france.csv.gz`,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "addresses", Value: 100_000, Usage: "`HOW MANY` rows", Validator: terminal.AtLeastOne},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`NUMBER` that decides what is invented"},
			&cli.StringFlag{Name: "out", Required: true, Usage: "`FILE`, compressed when it ends in .gz; - for standard output", TakesFile: true},
		},
		Action: p.generateAddresses,
	}
}

// generateAddresses writes invented addresses to the file of --out or to standard output. The same number and seed give the
// same bytes on every machine.
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
	err = synthetic.Write(ctx, out, communes, synthetic.Options{Addresses: total, Seed: c.Uint64("seed"), Progress: func(rows int) {
		bar.Update(fmt.Sprintf("%s of %s rows", terminal.GroupThousands(rows), terminal.GroupThousands(total)), int64(rows), int64(total))
	}})
	bar.Clear()
	return out.finish(err)
}

// outputFile is the destination of a command's output. The caller writes and then calls finish once, in every case.
type outputFile struct {
	io.Writer
	finish func(error) error // takes the error of writing, completes or removes the file, and returns the errors of both
}

// openOutput opens a file for output: standard output if the name is "-", a file compressed with gzip if the name ends in
// .gz. finish leaves standard output open.
func (p Program) openOutput(name string) (*outputFile, error) {
	if name == "-" {
		return &outputFile{p.Out, func(err error) error { return err }}, nil
	}
	file, err := createAtomicFile(name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return file, err
	}
	compressed := gzip.NewWriter(file)
	return &outputFile{compressed, func(err error) error { return file.finish(errors.Join(err, compressed.Close())) }}, nil
}

// createAtomicFile creates a file that appears under its name, complete and synced, when finish succeeds. Until then it is
// name.part; after an error finish removes that. A file of the same name is replaced.
func createAtomicFile(name string) (*outputFile, error) {
	// The name is in the same folder, because a rename cannot cross file systems.
	file, err := os.Create(name + ".part")
	if err != nil {
		return nil, err
	}
	return &outputFile{file, func(err error) error {
		if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
			err = osfile.Rename(file.Name(), name)
		}
		if err != nil {
			os.Remove(file.Name()) // its own error is dropped: the first one is what the user needs
		}
		return err
	}}, nil
}
