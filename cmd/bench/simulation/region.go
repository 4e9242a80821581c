package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/queries/address/ban"
	"lieudit/queries/address/commune"
	"lieudit/queries/address/live"
	"lieudit/queries/address/synthetic"
	"lieudit/queries/address/vintage"
	routelive "lieudit/queries/route/live"
	"lieudit/queries/route/network"
	roads "lieudit/queries/route/synthetic"
)

// region is a vintage and a road network, of some streets in a few towns, from which all instances of a world answer. Its files never change:
// imports are outside the simulation.
type region struct {
	folder    string
	addresses []customers.Address
}

// regionSize is the number of addresses of a region.
const regionSize = 1000

// newRegion builds the files of a region. The same seed gives the same region.
func newRegion(ctx context.Context, folder string, communes *commune.Table, seed uint64, date time.Time) (*region, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	r := &region{folder: folder}
	rows := synthetic.Rows(ctx, communes, synthetic.Options{Addresses: regionSize, Seed: seed})
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if row.Kind == ban.HouseNumber {
			line := strings.TrimSpace(fmt.Sprint(row.Numero, " ", row.Rep)) + " " + row.Voie
			r.addresses = append(r.addresses, customers.Address{ID: row.ID, Label: strings.Join([]string{line, row.CodePostal, row.Commune}, " "),
				Line: line, Postcode: row.CodePostal, Town: row.Commune, Lon: row.Lon, Lat: row.Lat})
		}
	}
	if _, err := vintage.Build(ctx, r.vintageFile(), rows, vintage.Options{Synthetic: true}); err != nil {
		return nil, err
	}
	streets, err := roads.ReadStreets(rows)
	if err != nil {
		return nil, err
	}
	source := r.networkFile() + ".osm.pbf"
	file, err := os.Create(source)
	if err != nil {
		return nil, err
	}
	_, err = roads.Generate(ctx, file, communes, roads.Options{Streets: streets, Seed: seed, Date: date})
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	_, err = network.Build(ctx, r.networkFile(), source, network.Options{IsSynthetic: true, Date: date})
	return r, err
}

func (r *region) vintageFile() string { return filepath.Join(r.folder, "vintage") }
func (r *region) networkFile() string { return filepath.Join(r.folder, "network") }

// regionView is the part of the region that one run of an instance serves: nothing in a world without one, and nothing while its files are
// away.
type regionView struct {
	region   *region // nil: there is none
	vintage  *live.Vintage
	networks *routelive.Router

	mu       sync.Mutex
	isClosed bool
}

// open serves the region from now on, unless the run has ended.
func (v *regionView) open() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.region == nil || v.isClosed {
		return nil
	}
	addresses, err := vintage.Open(v.region.vintageFile())
	if err != nil {
		return err
	}
	v.vintage.Swap(addresses)
	streets, err := network.Open(v.region.networkFile())
	if err != nil {
		return err
	}
	v.networks.Swap(streets)
	return nil
}

// errRegionAway is the error of every question while the files are away.
var errRegionAway = errors.New("the file is away")

// withdraw stops serving, as if a file had proved to be damaged.
func (v *regionView) withdraw() {
	v.vintage.Withdraw(errRegionAway)
	v.networks.Withdraw(errRegionAway)
}

// close unmaps the files. The run answers no more questions.
func (v *regionView) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.isClosed = true
	v.withdraw()
}
