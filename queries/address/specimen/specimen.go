// Package specimen writes invented addresses in the official format of the address base: real communes by their
// population, streets, numbers and localities that exist nowhere. The same seed gives the same bytes; memory does not
// grow with the number of rows. The source columns of every row say that it is synthetic.
package specimen

import (
	"bufio"
	"context"
	"errors"
	"io"

	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
)

// Order says what to write.
type Order struct {
	Addresses int // rows, localities among them
	Seed      uint64
	Progress  func(rows int) // called now and then; may be nil
}

// ErrNone: an order for no address.
var ErrNone = errors.New("no address is asked for")

// header is the official one.
const header = "id;id_fantoir;numero;rep;nom_voie;code_postal;code_insee;nom_commune;code_insee_ancienne_commune;" +
	"nom_ancienne_commune;x;y;lon;lat;type_position;alias;nom_ld;libelle_acheminement;nom_afnor;source_position;" +
	"source_nom_voie;certification_commune;cad_parcelles\n"

// Write writes a file, grouped by department and commune as the official ones.
func Write(ctx context.Context, w io.Writer, t *commune.Table, o Order) error {
	if o.Addresses < 1 {
		return ErrNone
	}
	out := bufio.NewWriterSize(w, 1<<18)
	out.WriteString(header)
	rows := 0
	for _, s := range shares(t, o) {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := newPlace(t, s.commune, o.Seed)
		for left := s.rows; left > 0; {
			left -= p.street(out, left)
		}
		if rows += s.rows; o.Progress != nil {
			o.Progress(rows)
		}
	}
	return out.Flush()
}

// source labels every row; the reader of the base counts the rows that bear it.
const source = ban.SyntheticSource
