package sitefile_test

import (
	"bytes"
	"fmt"
	"testing"

	"lieudit/http/sitefile"
)

// writeBenchmarkFile is a file of places with 30 columns as open data portals have them.
func writeBenchmarkFile(rows int) []byte {
	var out bytes.Buffer
	out.WriteString("ref_musee;nom_du_musee;adr;cp;ville;telephone1;fax;sitweb;courriel;horaires;geo_point_2d")
	for c := range 19 {
		fmt.Fprintf(&out, ";colonne %d", c)
	}
	out.WriteByte('\n')
	for n := range rows {
		fmt.Fprintf(&out, "M%05d;Musée  n° %d;%d, rue de l'Église 48000 Mende;48000;MENDE;04 66 65 %02d %02d;;www.musee-%d.fr;m%d@musees.fr;Lun-Ven: 9h00-18h00;44.5%04d, 3.5%04d",
			n, n, n%200, n%100, n/7%100, n, n, n%10000, n/3%10000)
		for c := range 19 {
			fmt.Fprintf(&out, ";valeur %d de %d", c, n%50)
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// BenchmarkRead reads a file of 20,000 places, the most that a sync takes, in both passes.
func BenchmarkRead(b *testing.B) {
	file := writeBenchmarkFile(sitefile.MaxSites)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		i, err := sitefile.Read(bytes.NewReader(file), int64(len(file)), "", sitefile.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if len(i.Sites) != sitefile.MaxSites {
			b.Fatalf("%d sites, %v", len(i.Sites), i.Errors)
		}
	}
}
