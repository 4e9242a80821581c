// Package synthetic generates invented addresses in the official CSV format of the address base. Communes and postcodes
// are real; streets, numbers and localities are not. The same Options give the same bytes on every
// machine, with memory that does not grow with the number of rows. The source columns of every row say that it is
// synthetic, so that no import takes it for real.
//
//	commune.Table ── allocateRows ──► communeShare… ── newGenerator ──► generator ── writeStreet ──► CSV (Write)
//	                   rows by population                 one a commune                              └─► ban.Row (Rows)
package synthetic

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
)

// Options says what to generate.
type Options struct {
	Addresses int // number of rows, localities included
	Seed      uint64
	Progress  func(rows int) // called after each commune; may be nil
}

// ErrNone says that Options ask for no address.
var ErrNone = errors.New("no address is asked for")

// header is the header of the official files.
const header = "id;id_fantoir;numero;rep;nom_voie;code_postal;code_insee;nom_commune;code_insee_ancienne_commune;" +
	"nom_ancienne_commune;x;y;lon;lat;type_position;alias;nom_ld;libelle_acheminement;nom_afnor;source_position;" +
	"source_nom_voie;certification_commune;cad_parcelles\n"

// Write writes one CSV file, grouped by department and commune as the official files are.
func Write(ctx context.Context, w io.Writer, t *commune.Table, o Options) error {
	if o.Addresses < 1 {
		return ErrNone
	}
	out := bufio.NewWriterSize(w, 1<<18)
	out.WriteString(header)
	rows := 0
	for _, s := range allocateRows(t, o) {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := newGenerator(t, s.commune, o.Seed)
		for left := s.rows; left > 0; {
			left -= p.writeStreet(out, left)
		}
		if rows += s.rows; o.Progress != nil {
			o.Progress(rows)
		}
	}
	return out.Flush()
}

// source is the value of the source columns. The reader of the base counts the rows that carry it.
const source = ban.SyntheticSource

// Rows yields the rows of Write without a file. One goroutine writes into a pipe from which the rows are read. It has
// ended when the iteration ends, also an early one. An error of Write is yielded and ends the rows.
func Rows(ctx context.Context, t *commune.Table, o Options) iter.Seq2[ban.Row, error] {
	return func(yield func(ban.Row, error) bool) {
		reader, writer := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			writer.CloseWithError(Write(ctx, writer, t, o)) // the reading side gets the error
		}()
		defer func() {
			reader.CloseWithError(io.ErrClosedPipe) // stops a Write that has not finished
			<-ended
		}()
		for row, err := range ban.Read(reader, "synthetic rows", &ban.Report{}) {
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

const (
	// baseWeight is added to the population of each commune: small communes have more addresses per inhabitant.
	baseWeight = 60
	// minRowsPerCommune is the average number of rows a commune gets when there are too few for all communes.
	minRowsPerCommune = 100
)

// communeShare is the number of rows of one commune.
type communeShare struct {
	commune *commune.Commune
	weight  float64
	rows    int
}

// allocateRows distributes the rows over communes in proportion to their weight. The result is in the order of codes.
func allocateRows(t *commune.Table, o Options) []communeShare {
	all := listAddressable(t)
	if some := max(1, o.Addresses/minRowsPerCommune); some < len(all) {
		all = sampleCommunes(all, some, o.Seed)
	}
	total, sum, given := 0.0, 0.0, 0
	for _, s := range all {
		total += s.weight
	}
	for i := range all {
		sum += all[i].weight
		upTo := int(math.Round(float64(o.Addresses) * sum / total))
		all[i].rows, given = upTo-given, upTo
	}
	return all
}

// listAddressable lists the communes that have addresses: the current ones, with arrondissements in place of their
// cities.
func listAddressable(t *commune.Table) (all []communeShare) {
	for c := range t.All() {
		if c.Kind != commune.Current && c.Kind != commune.Arrondissement || !c.Located() || len(c.Postcodes()) == 0 {
			continue
		}
		parts := t.Children(c.Code)
		if len(parts) > 0 && parts[0].Kind == commune.Arrondissement {
			continue
		}
		all = append(all, communeShare{commune: c, weight: float64(c.Population) + baseWeight})
	}
	return all
}

// sampleCommunes draws communes at random with probabilities by weight, and keeps their order (Efraimidis and Spirakis:
// the smallest exponential keys win).
func sampleCommunes(all []communeShare, some int, seed uint64) []communeShare {
	type lot struct {
		at  int
		key float64
	}
	r := rand.New(rand.NewPCG(seed, 0))
	lots := make([]lot, len(all))
	for i := range all {
		lots[i] = lot{i, r.ExpFloat64() / all[i].weight}
	}
	slices.SortFunc(lots, func(a, b lot) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	lots = lots[:some]
	slices.SortFunc(lots, func(a, b lot) int { return cmp.Compare(a.at, b.at) })
	drawn := make([]communeShare, some)
	for i, l := range lots {
		drawn[i] = all[l.at]
	}
	return drawn
}
