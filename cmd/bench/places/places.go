// Package places imports files of sites as a user does, and reports the result for each: whether it is accepted, what is recognized, fixed and
// doubted, what is stored, and whether its exports bring the same sites back. Everything except the reader's time and memory comes from the
// command line's own code, cli.Program, and from its output, so the report shows what a user sees.
//
//	Run ──> harness.StartService ──> measureFile for each of Files
//	measureFile ──> tryImport ──> describeColumns ──> describeSites ──> tripThroughForms ──> File
//	                            └─> harness.ReadPlacesCommand: time and memory of the reader, in a process of its own
//
// Each file has accounts of its own, so that the capacity of an account never refuses the next file.
package places

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"lieudit/cmd/bench/harness"
	"lieudit/cmd/lieudit/adminclient"
	"lieudit/queries/address/commune"
	"lieudit/schemas/plan"
)

// Options configure Run.
type Options struct {
	Dir     string   // the processes' folders are created in it
	Files   []string // files of sites, at least one
	Vintage []string // files of the address base to geocode sites with, or one finished vintage; none: the invented one of a new service
}

// Output receives the results of a run. Both functions are called from one goroutine.
type Output struct {
	Progress func(what string, done, total int)
	Report   func(File) error // called once for each file, in the order of Options.Files
}

// run is one run. All files go into one service.
type run struct {
	Options
	*harness.Service
	communes *commune.Table
	accounts int // opened so far
}

// Run imports the files one after another and reports each. A refused file is a result and not an error. Run leaves nothing behind.
func Run(ctx context.Context, o Options, out Output) (err error) {
	r := &run{Options: o}
	if r.communes, err = commune.Load(); err != nil {
		return err
	}
	if r.Service, err = harness.StartService(ctx, o.Dir, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Remove()) }()
	if err := r.importVintage(ctx); err != nil {
		return err
	}
	for n, path := range o.Files {
		out.Progress(filepath.Base(path), n, len(o.Files))
		f, err := r.measureFile(ctx, path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := out.Report(f); err != nil {
			return err
		}
	}
	return nil
}

// importVintage makes the service geocode sites with the files of the options. When it returns, the service answers from them.
func (r *run) importVintage(ctx context.Context) error {
	if len(r.Vintage) == 0 {
		return nil
	}
	args := append([]string{"ban", "import", "--data", r.DataDir}, r.Vintage...)
	if filepath.Ext(r.Vintage[0]) == ".vintage" {
		sum, err := sumFile(r.Vintage[0])
		if err != nil {
			return err
		}
		args = append(args, "--sha256", sum)
	}
	if c := runCommand(ctx, nil, args...); c.code != 0 {
		return errors.New(c.stderr)
	}
	return nil
}

// referential is the code of each account's only referential.
const referential = "places"

// openAccount opens an account with an empty referential.
func (r *run) openAccount(ctx context.Context) (account, error) {
	r.accounts++
	key, err := r.Admin.OpenAccount(ctx, "places-"+strconv.Itoa(r.accounts), plan.Business, harness.UnlimitedQuota)
	if err != nil {
		return account{}, err
	}
	a := account{url: "http://" + r.API, key: key.Token}
	c, err := adminclient.NewAPI(a.url, a.key)
	if err != nil {
		return account{}, err
	}
	_, err = c.Post(ctx, "/locations/referentiels", map[string]string{"code": referential})
	return a, err
}

// measureFile fills a File. A file that is refused twice has no sites.
func (r *run) measureFile(ctx context.Context, path string) (File, error) {
	f := File{Name: filepath.Base(path)}
	a, err := r.openAccount(ctx)
	if err != nil {
		return f, err
	}
	flags := f.tryImport(ctx, a, path)
	f.describeColumns(ctx, a, path, flags)
	if f.Seconds, f.PeakKB, err = r.measureReader(ctx, path); err != nil {
		return f, err
	}
	if !f.isImported() {
		return f, nil
	}
	if err := f.describeSites(ctx, a, path, flags, r); err != nil {
		return f, err
	}
	f.RoundTrips, err = r.tripThroughForms(ctx, a, flags)
	return f, err
}

// tryImport imports a file with no flag but the referential and, if that is refused, once more with the flags that the message proposes. It
// returns the flags of the last try.
func (f *File) tryImport(ctx context.Context, a account, path string) (flags []string) {
	c := a.importFile(ctx, path)
	f.First = newAttempt(nil, path, c)
	if !f.First.Imported {
		if flags = proposedFlags(c.stderr); len(flags) > 0 {
			c = a.importFile(ctx, path, flags...)
			second := newAttempt(flags, path, c)
			f.Second = &second
		}
	}
	return flags
}

// describeColumns parses the preview: the rows, what each column becomes, and the notes, fixes and doubts. An unreadable file has none.
func (f *File) describeColumns(ctx context.Context, a account, path string, flags []string) {
	c := a.importFile(ctx, path, append(flags, "--preview")...)
	f.Rows, f.Columns = parsePreview(c.stdout)
	f.Notes = parseNotes(c.stdout)
	f.Mended, f.Doubts = parseFindings(c.stdout, "mended"), parseFindings(c.stdout, "doubt")
}

// measureReader reads a file in a process that does nothing else. It returns how long that took and the peak memory of the process, including
// its tables of communes; 0 if the system does not report it.
func (r *run) measureReader(ctx context.Context, path string) (seconds float64, peakKB int, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return 0, 0, err
	}
	// It needs a process of its own, because one that imports and serves uses memory for that too.
	p, err := harness.StartProcess(r.WorkDir, "reader", harness.ReadPlacesCommand, path)
	if err != nil {
		return 0, 0, err
	}
	defer p.Kill()
	took, err := p.WaitForLine(ctx, "seconds")
	if err != nil {
		return 0, 0, err
	}
	peak, err := p.WaitForLine(ctx, "peak")
	if err != nil {
		return 0, 0, err
	}
	if seconds, err = strconv.ParseFloat(took, 64); err == nil {
		peakKB, err = strconv.Atoi(peak)
	}
	return seconds, peakKB, err
}
