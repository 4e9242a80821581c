package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v3"

	"lieudit/cmd/lieudit/adminclient"
	"lieudit/cmd/terminal"
	"lieudit/eventstore/disk/osfile"
	"lieudit/http/sitefile"
	"lieudit/http/sitefile/mapping"
	"lieudit/http/sitefile/record"
	"lieudit/schemas/body"
	"lieudit/schemas/locations"
)

// sitesImportCommand is lieudit sites import: POST /locations/referentiels/{code}/sites:sync with the sites of a file. A sync makes
// the referential's sites those of the file, all or nothing.
func (p Program) sitesImportCommand() *cli.Command {
	return &cli.Command{
		Name:                      "import",
		Usage:                     "Make the sites of a referential those of a file",
		ArgsUsage:                 "FILE",
		DisableSliceFlagSeparator: true, // the name of a column may hold a comma
		Description: `FILE is CSV, XLSX, GeoJSON, JSON or newline-delimited JSON as it comes from a spreadsheet, a map program or an open
data portal; - is standard input. Columns are recognized by their names and their content; what is no field of a site is
kept in its proprietes. It is the whole set: sites that the file does not have become inactive, and so do those that a column
of it says are closed. All is written, or nothing. --preview and --dry-run name what is created, updated and deactivated.
--create opens a referential that is not there yet, when nothing keeps the file out any more: a file that is refused opens none.
Nor does --preview, which then cannot say how many sites their address places.

  lieudit sites import shops.xlsx --referential shops --preview
  lieudit sites import museums.csv --referential museums --id ref_musee --map nom=nom_du_musee --ignore 'geo_*'`,
		Flags: p.sitesFlags(
			&cli.BoolFlag{Name: "preview", Usage: "show what each column becomes and what would be written, and write nothing"},
			&cli.BoolFlag{Name: "dry-run", Usage: "say what would be done and do nothing"},
			&cli.BoolFlag{Name: "create", Usage: "open the referential where there is none of this code, once the file was checked"},
			&cli.BoolFlag{Name: "confirm", Usage: "write without a question, and even if more than half of the active sites become inactive, or if positions or ids look wrong"},
			&cli.StringSliceFlag{Name: "map", Usage: "`FIELD=COLUMN`: the column holds this field (nom, ligne_1, lat, …; proprietes: none); repeat it"},
			&cli.StringSliceFlag{Name: "ignore", Usage: "`COLUMN` that is not stored; * stands for any signs; repeat it"},
			&cli.StringFlag{Name: "id", Usage: "`COLUMN` of external_id, what each place is called and known by at the next import; hash:FIELD,FIELD makes ids of fields"},
			&cli.StringFlag{Name: "mapping", Usage: "`FILE` that keeps what each column becomes: written by the first import, read by the next", TakesFile: true},
			&cli.StringFlag{Name: "sheet", Usage: "`SHEET` of a spreadsheet, by name or number; the first with a row of names when left out"},
			&cli.IntFlag{Name: "header", Usage: "`LINE` that holds the names of the columns, where titles stand above it; 0: no line does"},
			&cli.StringFlag{Name: "shapes", Usage: "`WAY` with lines and polygons: center (the middle) or skip (left out)", Validator: terminal.OneOf("center", "skip")},
			&cli.StringFlag{Name: "crs", Usage: "`SYSTEM` of positions in metres, such as EPSG:2154, where the file names none"},
			&cli.StringFlag{Name: "separator", Usage: "`SIGN` between cells of CSV; found when left out", Validator: validateSeparator},
			&cli.StringFlag{Name: "encoding", Usage: "`ENCODING` of a text; found when left out"},
		),
		Action: p.apiAction(importSites),
	}
}

// importSites reads a file, asks the service what a sync of its sites would do, and does it unless something looks wrong. The
// service is asked twice, which counts as two requests: the first time nothing is written.
func importSites(ctx context.Context, s session) error {
	file, err := s.openImport()
	if err != nil {
		return err
	}
	defer file.close()
	read, err := sitefile.Read(file, file.size, file.name, file.options)
	if err != nil {
		return file.explainReadError(err)
	}
	if s.showsPreview(file) {
		if err := s.printPreview(read); err != nil {
			return err
		}
	}
	if len(read.Errors) > 0 {
		return describeErrors(file.name, read.Errors)
	}
	known, err := s.knownSites(ctx, read)
	if err != nil {
		return err
	}
	read.PlaceAgain(known)
	read.KeepPositions(known)
	read.KeepUncomputed(known)
	return s.syncFile(ctx, file, read, known)
}

// syncFile asks for a dry run, shows it, stops if it looks wrong, and writes. If a referential is to be created, it is opened last.
func (s session) syncFile(ctx context.Context, file *importFile, read *sitefile.Import, known map[string]sitefile.Site) error {
	raw, would, isNew, err := s.dryRunSync(ctx, file, read)
	if err != nil {
		return err
	}
	stops, err := s.findStops(ctx, read, would, known)
	if err != nil {
		return err
	}
	isTrial := s.Bool("preview") || s.Bool("dry-run")
	if isNew && (isTrial || s.IsTerminal) {
		if err := s.printOpening(read); err != nil {
			return err
		}
	}
	if isTrial {
		return errors.Join(s.printSync(raw, read), s.describeStops("it would be refused", stops), describeRefusal("it would be refused", would.Refusal))
	}
	if err := s.confirmSync(file, read, would, stops); err != nil {
		return err
	}
	if err := describeRefusal("refused", would.Refusal); err != nil {
		return err
	}
	saved, err := file.createMapping(read.Mapping) // before the sites: if the mapping cannot be kept, nothing is written
	if err != nil {
		return fmt.Errorf("--mapping: %w\nnothing was written", err)
	}
	if isNew {
		raw, err = s.writeFirstSync(ctx, file, read)
	} else {
		raw, _, err = s.postSync(ctx, file.name, read, false)
	}
	if err = saved.finish(err); err != nil {
		return err
	}
	return s.printSync(raw, read)
}

// dryRunSync asks what a sync would do. isNew means that --create will open the referential; the sync is then forecast here.
func (s session) dryRunSync(ctx context.Context, file *importFile, read *sitefile.Import) (raw json.RawMessage, would body.Synced, isNew bool, err error) {
	raw, would, err = s.postSync(ctx, file.name, read, true)
	refused := new(adminclient.APIError)
	if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		return raw, would, false, err
	}
	if !s.Bool("create") {
		return raw, would, false, fmt.Errorf("there is no referential %s: --create opens it\nnothing was written", s.String("referential"))
	}
	raw, would, err = s.forecastSync(ctx, file, read)
	return raw, would, true, err
}

// postSync sends the sites of a file. Broken rules become errors about lines of the file.
func (s session) postSync(ctx context.Context, name string, read *sitefile.Import, isDryRun bool) (json.RawMessage, body.Synced, error) {
	path := adminclient.JoinPath("", "locations", "referentiels", s.String("referential")) + "/sites:sync"
	var synced body.Synced
	raw, err := s.client.Post(ctx, path, newSyncBody(read.Sites, s.Bool("confirm"), isDryRun))
	if apiError := new(adminclient.APIError); errors.As(err, &apiError) && len(apiError.FieldErrors) > 0 {
		return nil, synced, locateFieldErrors(name, read.Sites, apiError.FieldErrors)
	}
	if err != nil {
		return nil, synced, explainSyncRefusal(err)
	}
	if err := json.Unmarshal(raw, &synced); err != nil {
		return nil, synced, fmt.Errorf("reading the answer: %w", err)
	}
	return raw, synced, nil
}

// siteRow is a site in the body of a sync.
type siteRow struct {
	ExternalID string `json:"external_id"`
	locations.Content
}

// newSyncBody is the body of a sync, which holds the whole file at once: a sync is one request. confirmed allows a sync that
// deactivates more than half of the active sites; a dry run only says what a sync would do.
func newSyncBody(all []sitefile.Site, confirmed, isDryRun bool) any {
	rows := make([]siteRow, len(all))
	for i, site := range all {
		rows[i] = siteRow{site.ExternalID, site.Content}
	}
	return struct {
		Sites   []siteRow `json:"sites"`
		Confirm bool      `json:"confirmer_reduction,omitempty"`
		DryRun  bool      `json:"dry_run,omitempty"`
	}{rows, confirmed, isDryRun}
}

// locateReadError adds to an error of reading a file its name and, if known, the line, as compilers write them.
func locateReadError(name string, err error) error {
	if line, ok := errors.AsType[*record.LineError](err); ok {
		return fmt.Errorf("%s:%d: %s\nnothing was written", name, line.Line, line.Reason)
	}
	return fmt.Errorf("%s: %w\nnothing was written", name, err)
}

// explainReadError adds to an error of reading a file the flags with which it can be read. It tries flags before it proposes them, and
// reports any other error along with them: a user who follows a proposal should not be refused again.
func (f *importFile) explainReadError(err error) error {
	options, reason, flags := f.options, "", ""
	titles, isTitles := errors.AsType[*record.TitleRowsError](err)
	noNames, isNoNames := errors.AsType[*record.NoNamesError](err)
	switch {
	case isTitles && titles.Sheet != "":
		options.Record.Sheet, options.Record.HeaderLine = titles.Sheet, titles.HeaderLine
		reason = fmt.Sprintf("titles stand above the names of the columns, which line %d of the sheet %q seems to hold", titles.HeaderLine, titles.Sheet)
		flags = fmt.Sprintf("--sheet '%s' --header %d takes the names from there", titles.Sheet, titles.HeaderLine)
	case isTitles:
		options.Record.HeaderLine = titles.HeaderLine
		reason = fmt.Sprintf("titles stand above the names of the columns, which line %d seems to hold", titles.HeaderLine)
		flags = fmt.Sprintf("--header %d takes the names from there", titles.HeaderLine)
	case isNoNames:
		options.Record.HeaderLine = record.NoHeader
		reason = fmt.Sprintf("line %d: %s", noNames.Line, noNames.Reason)
		flags = "or --header 0 reads the file without names: its columns are colonne_1, colonne_2, …, and what they hold is found out, or said (--map)"
	default:
		return locateReadError(f.name, err)
	}
	read, err := sitefile.Read(f, f.size, f.name, options)
	if err != nil {
		return fmt.Errorf("%s: %s\n  take what stands above the names out; they cannot be taken from there: %w\nnothing was written", f.name, reason, err)
	}
	text := terminal.SanitizeText(flags)
	if len(read.Errors) > 0 {
		return fmt.Errorf("%s: %s\n  %s; then, with it:\n%w", f.name, terminal.SanitizeText(reason), text, describeErrors(f.name, read.Errors))
	}
	return fmt.Errorf("%s: %s\n  %s\nnothing was written", f.name, terminal.SanitizeText(reason), text)
}

// describeErrors returns the error for a file with errors: each on a line, with what can be done on the next.
func describeErrors(name string, errs []mapping.Error) error {
	var out strings.Builder
	for _, o := range errs {
		fmt.Fprintf(&out, "%s: %s\n", name, terminal.SanitizeText(o.Reason))
		if o.Advice != "" {
			fmt.Fprintf(&out, "  %s\n", terminal.SanitizeText(o.Advice))
		}
	}
	out.WriteString("nothing was written")
	return errors.New(out.String())
}

// locateFieldErrors returns an error with one line for each kind of broken rule, with the lines of the file that break it. A rule
// about no row names the file alone.
func locateFieldErrors(name string, sites []sitefile.Site, items []adminclient.FieldError) error {
	type fault struct {
		text  string
		lines []string
	}
	var faults []*fault
	byText := map[string]*fault{}
	for _, i := range items {
		row, field, ok := i.Row("sites")
		text := strings.TrimPrefix(field+": "+i.Msg, ": ")
		f := byText[text]
		if f == nil {
			f = &fault{text: text}
			faults, byText[text] = append(faults, f), f
		}
		if ok && row < len(sites) {
			f.lines = append(f.lines, strconv.Itoa(sites[row].Line))
		}
	}
	var out strings.Builder
	for _, f := range faults {
		where := name
		if n := len(f.lines); n > 0 {
			where += ":" + strings.Join(f.lines[:min(n, 5)], ",") + terminal.EmptyIf(n <= 5, fmt.Sprintf(" and %d more", n-5))
		}
		fmt.Fprintf(&out, "%s: %s\n", where, f.text)
	}
	if len(items) == 100 { // the service sends no more (problem.MaxViolations)
		fmt.Fprintln(&out, "… there may be more")
	}
	out.WriteString("nothing was written")
	return errors.New(out.String())
}

// explainSyncRefusal adds to the refusal of a sync that nothing was written, and what can be done. Another error is returned
// as it is: it does not say whether the sync was written.
func explainSyncRefusal(err error) error {
	refused := new(adminclient.APIError)
	switch {
	case !errors.As(err, &refused):
	case refused.Code == "reduction_suspecte":
		return fmt.Errorf("%w\nnothing was written; --confirm says that it is meant", err)
	case refused.Code == "capacite_sites_depassee":
		return fmt.Errorf("%s\nnothing was written", refused.Detail) // the detail holds the numbers
	}
	return err
}

// describeRefusal returns the error for a sync that the service would refuse according to its dry run, nil if it would not.
func describeRefusal(verb string, refusal any) error {
	if refusal == nil {
		return nil
	}
	text, _ := json.Marshal(refusal) // cannot fail: it was decoded from JSON
	var r struct {
		Code     string `json:"code"`
		Opened   int    `json:"referentiels_actifs"`
		Maximum  int    `json:"maximum"`
		Active   int    `json:"sites_actifs"`
		Capacity int    `json:"capacite"`
		Ceiling  int    `json:"plafond"`
		Before   int    `json:"actifs_avant"`
		After    int    `json:"actifs_apres"`
	}
	if json.Unmarshal(text, &r) != nil {
		return fmt.Errorf("%s: %s\nnothing was written", verb, text)
	}
	switch r.Code {
	case "capacite_sites_depassee":
		return fmt.Errorf("%s: the account's plan holds %d places, %d at most, and %d are active already; a larger plan holds more (%s)\nnothing was written",
			verb, r.Capacity, r.Ceiling, r.Active, r.Code)
	case "capacite_referentiels_depassee":
		return fmt.Errorf("%s: the account's plan holds %d referentials, and %d are open already (%s)\nnothing was written", verb, r.Maximum, r.Opened, r.Code)
	case "reduction_suspecte":
		return fmt.Errorf("%s: more than half of the %d places that are active would become inactive; %d would be active then (%s)\nnothing was written; --confirm says that it is meant",
			verb, r.Before, r.After, r.Code)
	}
	return fmt.Errorf("%s: %s\nnothing was written", verb, text)
}

// importFile is the file of an import, its name for messages, and what its user says about it.
type importFile struct {
	io.ReaderAt
	size        int64
	name        string
	options     sitefile.Options
	mappingFile string
	hasMapping  bool // the mapping was read: it is not new
	close       func() error
}

// openImport opens the file that the command names. Standard input is copied to a file, because it is read twice.
func (s session) openImport() (*importFile, error) {
	f := &importFile{name: s.Args().First(), mappingFile: s.String("mapping")}
	var err error
	if f.options, err = s.importOptions(); err != nil {
		return nil, err
	}
	if err := f.loadMapping(); err != nil {
		return nil, err
	}
	file, err := s.openInput(f.name)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if f.name == "-" {
		f.name = "standard input"
	}
	f.ReaderAt, f.size, f.close = file, info.Size(), file.Close
	return f, nil
}

// openInput opens a file, or a copy of standard input if the name is "-". The copy exists until it is closed.
func (s session) openInput(name string) (*os.File, error) {
	if name != "-" {
		return os.Open(name)
	}
	spool, err := osfile.CreateUnnamed("")
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(spool, s.In); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return spool, nil
}

// importOptions are the flags about the file.
func (s session) importOptions() (sitefile.Options, error) {
	o := sitefile.Options{Shapes: sitefile.Shapes(strings.ToLower(s.String("shapes")))}
	o.Record.Sheet, o.Record.Encoding, o.Record.HeaderLine = s.String("sheet"), s.String("encoding"), s.Int("header")
	if s.IsSet("header") && s.Int("header") == 0 {
		o.Record.HeaderLine = record.NoHeader
	}
	if separator := s.String("separator"); separator != "" {
		o.Record.Separator, _ = utf8.DecodeRuneInString(separator)
	}
	o.Columns = mapping.Given{Ignore: s.StringSlice("ignore"), ID: s.String("id"), CRS: s.String("crs"), Columns: map[string]mapping.Target{}}
	for _, pair := range s.StringSlice("map") {
		field, column, ok := strings.Cut(pair, "=")
		target, isField := mapping.ParseTarget(field)
		_, isTwice := o.Columns.Columns[column]
		switch {
		case !ok || column == "":
			return o, terminal.NewUsageError(s.Command, "--map %q: write FIELD=COLUMN, such as nom=nom_du_musee", pair)
		case !isField:
			return o, terminal.NewUsageError(s.Command, "--map %q: no field is called %q; the fields are %s", pair, field, strings.Join(mapping.FieldNames(), ", "))
		case isTwice:
			return o, terminal.NewUsageError(s.Command, "--map %q: the column %q has a field already; --id may name it beside", pair, column)
		}
		o.Columns.Columns[column] = target
	}
	return o, nil
}

// savedMapping is the file of --mapping: what each column becomes, and the user's other settings for the file.
type savedMapping struct {
	Columns   map[string]string `json:"columns"` // mapping.Target.String by mapping.ColumnKey
	ID        string            `json:"id,omitempty"`
	Shapes    string            `json:"shapes,omitempty"`
	CRS       string            `json:"crs,omitempty"`
	Sheet     string            `json:"sheet,omitempty"`
	Header    int               `json:"header,omitempty"`
	Separator string            `json:"separator,omitempty"`
	Encoding  string            `json:"encoding,omitempty"`
}

// loadMapping reads the file of --mapping, if it exists. Flags override it.
func (f *importFile) loadMapping() error {
	if f.mappingFile == "" {
		return nil
	}
	text, err := os.ReadFile(f.mappingFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var saved savedMapping
	if err := json.Unmarshal(text, &saved); err != nil {
		return fmt.Errorf("%s: this is no mapping: %w", f.mappingFile, err)
	}
	f.hasMapping, f.options.Columns.IsSaved = true, true
	o := &f.options
	o.Columns.ID, o.Columns.CRS = cmp.Or(o.Columns.ID, saved.ID), cmp.Or(o.Columns.CRS, saved.CRS)
	o.Shapes = cmp.Or(o.Shapes, sitefile.Shapes(saved.Shapes))
	r := &o.Record
	r.Sheet, r.HeaderLine, r.Encoding = cmp.Or(r.Sheet, saved.Sheet), cmp.Or(r.HeaderLine, saved.Header), cmp.Or(r.Encoding, saved.Encoding)
	if r.Separator == 0 && saved.Separator != "" {
		r.Separator, _ = utf8.DecodeRuneInString(saved.Separator)
	}
	return f.loadTargets(saved.Columns)
}

// loadTargets takes the targets of a mapping, except those of columns and fields that flags name.
func (f *importFile) loadTargets(saved map[string]string) error {
	given := f.options.Columns.Columns
	isGiven := map[mapping.Field]bool{}
	for _, t := range given {
		isGiven[t.Field] = t.Field != ""
	}
	for key, text := range saved {
		target, ok := mapping.ParseTarget(text)
		if !ok {
			return fmt.Errorf("%s: the column %q: no field is called %q", f.mappingFile, key, text)
		}
		if _, known := given[key]; known {
			continue
		}
		if isGiven[target.Field] {
			target = mapping.Target{} // another column has the field now
		}
		given[key] = target
	}
	return nil
}

// createMapping writes what each column became to the file of --mapping, unless it was read from there. The file appears when the
// import has succeeded.
func (f *importFile) createMapping(m mapping.Mapping) (*outputFile, error) {
	if f.mappingFile == "" || f.hasMapping {
		return &outputFile{nil, func(err error) error { return err }}, nil
	}
	o := f.options
	saved := savedMapping{
		Columns: map[string]string{}, ID: o.Columns.ID, Shapes: string(o.Shapes), CRS: o.Columns.CRS,
		Sheet: o.Record.Sheet, Header: o.Record.HeaderLine, Encoding: o.Record.Encoding,
	}
	if o.Record.Separator != 0 {
		saved.Separator = string(o.Record.Separator)
	}
	keys := m.ColumnKeys()
	for i, t := range m.Targets {
		saved.Columns[keys[i]] = t.String()
	}
	text, err := json.MarshalIndent(saved, "", "  ")
	if err != nil {
		return nil, err
	}
	file, err := createAtomicFile(f.mappingFile)
	if err != nil {
		return nil, err
	}
	if _, err := file.Write(append(text, '\n')); err != nil {
		return nil, file.finish(err)
	}
	return file, nil
}

// knownSites returns the sites of the referential for a file that was exported, which is compared with them, and for a file
// with formulas whose values are unknown. For any other file, and if there is no referential yet, it returns nil.
func (s session) knownSites(ctx context.Context, read *sitefile.Import) (map[string]sitefile.Site, error) {
	if !read.Mapping.IsExport && read.Info.UncomputedFormulas.Number == 0 {
		return nil, nil
	}
	known, err := s.exportedSites(ctx)
	if refused, ok := errors.AsType[*adminclient.APIError](err); ok && refused.Status == http.StatusNotFound {
		return nil, nil // the dry run says so
	}
	return known, err
}
