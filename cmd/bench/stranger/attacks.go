package stranger

import (
	"slices"

	"lieudit/schemas/plan"
)

// allAttacks is the table of attacks. A new one is a row here, or in one of the files that are named after what they spend:
//
//	attacks_files.go         widths and texts of CSV files, and questions that are slow by their text
//	attacks_answers.go       answers that are read slowly or not at all
//	attacks_connections.go   connections without requests, half requests, slow and large ones, and floods of keys
//	attacks_work.go          the dearest routes and searches, and the largest bodies
func allAttacks() []attack {
	return slices.Concat(fileAttacks(), answerAttacks(), connectionAttacks(), workAttacks())
}

// The plans that attacks use: the cheapest one that includes what they spend.
const (
	forAddresses = plan.Discovery
	forMany      = plan.Starter // for more requests than the highest quota of DISCOVERY
	forSites     = plan.Starter
	forTools     = plan.Growth
	forAll       = plan.Business
)
