package deployment

import (
	"context"
	"slices"

	"lieudit/commands"
	"lieudit/schemas/event"
)

// releasesID is the id of the stream deployment-releases. It is a stream of its own, because every instance often reads
// deployment-log back to its beginning.
const releasesID = "releases"

// Fleet is the fold of the stream deployment-releases: the releases and the instances. The zero Fleet is that of a log without such
// events.
type Fleet struct {
	Releases  []event.DataReleased      // all kinds, the oldest first
	Instances []event.InstanceAnnounced // in the order in which they were first announced; each once
}

// FleetAggregate describes how the stream is folded.
var FleetAggregate = commands.Aggregate[Fleet]{Category: Aggregate.Category, Evolve: EvolveFleet}

// EvolveFleet changes the fleet by one record. An instance that is announced at the address of another one on the same machine
// replaces it: that one ended without leaving.
func EvolveFleet(f *Fleet, rec commands.Record) {
	switch e := rec.Event.(type) {
	case event.DataReleased:
		f.Releases = append(f.Releases, e)
	case event.InstanceAnnounced:
		if i := f.indexOf(e.Instance); i >= 0 {
			f.Instances[i] = e
			return
		}
		f.Instances = slices.DeleteFunc(f.Instances, func(other event.InstanceAnnounced) bool {
			return e.URL != "" && other.URL == e.URL && other.Host == e.Host
		})
		f.Instances = append(f.Instances, e)
	case event.InstanceLeft:
		f.Instances = slices.DeleteFunc(f.Instances, func(other event.InstanceAnnounced) bool { return other.Instance == e.Instance })
	}
}

// indexOf returns the index of an instance in Instances, or -1 if it is not there.
func (f *Fleet) indexOf(instance string) int {
	return slices.IndexFunc(f.Instances, func(i event.InstanceAnnounced) bool { return i.Instance == instance })
}

// Latest returns the last release of a kind whose format lies within bounds. ok is false if there is none.
func (f *Fleet) Latest(kind string, firstFormat, lastFormat int) (latest event.DataReleased, ok bool) {
	for _, r := range slices.Backward(f.Releases) {
		if r.Kind == kind && firstFormat <= r.Format && r.Format <= lastFormat {
			return r, true
		}
	}
	return latest, false
}

// Last returns the last release of a kind, whatever its format.
func (f *Fleet) Last(kind string) (last event.DataReleased, ok bool) {
	return f.Latest(kind, 0, int(^uint(0)>>1))
}

// Find returns the last release of a kind whose file has a checksum.
func (f *Fleet) Find(kind, sum string) (found event.DataReleased, ok bool) {
	for _, r := range slices.Backward(f.Releases) {
		if r.Kind == kind && r.Sum == sum {
			return r, true
		}
	}
	return found, false
}

// Of returns the data of a kind that an instance has announced.
func (f *Fleet) Of(instance, kind string) (data event.AnnouncedData, ok bool) {
	if i := f.indexOf(instance); i >= 0 {
		return dataOf(f.Instances[i], kind)
	}
	return data, false
}

// dataOf returns the data of a kind in an announcement.
func dataOf(a event.InstanceAnnounced, kind string) (data event.AnnouncedData, ok bool) {
	if i := slices.IndexFunc(a.Data, func(d event.AnnouncedData) bool { return d.Kind == kind }); i >= 0 {
		return a.Data[i], true
	}
	return data, false
}

// Holders returns the instances from which others can fetch the file of a release, first those that serve it. The instance that
// released it counts as serving it even before it has announced that.
func (f *Fleet) Holders(r event.DataReleased) (holders []event.InstanceAnnounced) {
	var before []event.InstanceAnnounced
	for _, i := range f.Instances {
		switch d, _ := dataOf(i, r.Kind); {
		case i.URL == "":
		case d.Serves == r.Sum:
			holders = append(holders, i)
		case d.Before == r.Sum || i.Instance == r.Instance:
			before = append(before, i)
		}
	}
	return append(holders, before...)
}

// Fleet returns the fleet as the log has it now. The caller must not change the elements of the slices.
func (d *Deployment) Fleet(ctx context.Context) (current Fleet, err error) {
	err = d.fleet.View(ctx, releasesID, func(f *Fleet) {
		current = Fleet{slices.Clone(f.Releases), slices.Clone(f.Instances)}
	})
	return current, err
}

// ReleaseData records a release. It appends nothing if the file already is the last release of its kind. An adopted file is released
// only if there is no release of its kind yet, or if the last one was adopted too and is of an earlier date.
func (d *Deployment) ReleaseData(ctx context.Context, meta commands.Metadata, r event.DataReleased) error {
	_, err := d.fleet.Handle(ctx, releasesID, meta, func(f *Fleet) commands.Result {
		last, ok := f.Last(r.Kind)
		if ok && (last.Sum == r.Sum || r.IsAdopted && !(last.IsAdopted && last.Date < r.Date)) {
			return commands.Result{}
		}
		return commands.Append(r)
	})
	return err
}

// AnnounceInstance records what an instance serves. It appends nothing if the log already holds the same announcement.
func (d *Deployment) AnnounceInstance(ctx context.Context, meta commands.Metadata, a event.InstanceAnnounced) error {
	_, err := d.fleet.Handle(ctx, releasesID, meta, func(f *Fleet) commands.Result {
		if i := f.indexOf(a.Instance); i >= 0 && isSameAnnouncement(f.Instances[i], a) {
			return commands.Result{}
		}
		return commands.Append(a)
	})
	return err
}

// isSameAnnouncement reports whether two announcements are equal.
func isSameAnnouncement(a, b event.InstanceAnnounced) bool {
	return a.Instance == b.Instance && a.Host == b.Host && a.URL == b.URL && a.Program == b.Program && slices.Equal(a.Data, b.Data)
}

// RemoveInstance removes an instance from the list; isLost means that the instance did not ask for it itself. It appends nothing if
// the instance is not there.
func (d *Deployment) RemoveInstance(ctx context.Context, meta commands.Metadata, instance string, isLost bool) error {
	_, err := d.fleet.Handle(ctx, releasesID, meta, func(f *Fleet) commands.Result {
		if f.indexOf(instance) < 0 {
			return commands.Result{}
		}
		return commands.Append(event.InstanceLeft{Instance: instance, IsLost: isLost})
	})
	return err
}
