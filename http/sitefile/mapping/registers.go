package mapping

import "strings"

// register is an official register whose columns have names of its own. Its file is recognized by some of them together; then its columns
// hold what the register publishes in them, whatever their names suggest: two addresses of one association are not one address in parts.
type register struct {
	marks  string           // names that only its files have together, separated by commas
	fields []registerColumn // the first filled one of a field holds it
	kept   string           // patterns of its other columns, which are about something else and become properties
}

type registerColumn struct {
	name  string
	field Field
}

// registers are the tables of the registers, with their names as normalizeName gives them. Sources: the dictionaries of the files RNA
// (Waldec and import), Annuaire Santé (PS_LibreAcces), FINESS (structures) and Sirene (StockEtablissement).
var registers = []register{
	{ // RNA Waldec: adrs is the seat, adrg the address of the manager
		marks: "adrs libvoie, adrs codepostal, adrg libvoie",
		fields: []registerColumn{
			{"titre", Name}, {"adrs complement", Line2}, {"adrs numvoie", HouseNumber}, {"adrs repetition", Suffix}, {"adrs typevoie", StreetType},
			{"adrs libvoie", StreetName}, {"adrs distrib", Line2}, {"adrs codeinsee", InseeCode}, {"adrs codepostal", PostalCode},
			{"adrs libcommune", City}, {"siteweb", Website},
		},
		kept: "adrg *, id ex, siret, rup mi, gestion, date *, nature, groupement, titre court, objet*, dir *, publiweb, observation, position, maj time",
	},
	{ // RNA import: the associations from before Waldec
		marks: "adr1, adrs codepostal, libcom",
		fields: []registerColumn{
			{"titre", Name}, {"adr1", Line1}, {"adr2", Line2}, {"adr3", Line2}, {"adrs codepostal", PostalCode}, {"libcom", City}, {"adrs codeinsee", InseeCode},
			{"siteweb", Website},
		},
		kept: "id ex, siret, rup mi, gestion, date *, nature, groupement, titre court, objet*, dir *, observation, position, maj time",
	},
	{ // the health professionals: the address is that of the structure
		marks: "identification nationale pp, numero voie coord structure, code postal coord structure",
		fields: []registerColumn{
			{"raison sociale site", Name}, {"enseigne commerciale site", Name}, {"nom exercice", Name},
			{"complement destinataire coord structure", Line2}, {"complement point geographique coord structure", Line2},
			{"numero voie coord structure", HouseNumber}, {"indice repetition voie coord structure", Suffix},
			{"libelle type voie coord structure", StreetType}, {"code type voie coord structure", StreetType}, {"libelle voie coord structure", StreetName},
			{"mention distribution coord structure", Line2}, {"bureau cedex coord structure", PostalTown}, {"code postal coord structure", PostalCode},
			{"libelle commune coord structure", City}, {"code commune coord structure", InseeCode}, {"libelle pays coord structure", Country},
			{"telephone coord structure", Phone}, {"adresse e mail coord structure", Email},
		},
		kept: "type identifiant pp, code civilite*, libelle civilite*, prenom exercice, nom exercice, code *, libelle *, numero siren site, telephone 2 coord structure, telecopie coord structure, ancien identifiant structure, autorite enregistrement",
	},
	{ // FINESS: commune is the number of the commune within its department
		marks: "nofinesset, nofinessej, ligneacheminement",
		fields: []registerColumn{
			{"nofinesset", ExternalID}, {"rslongue", Name}, {"rs", Name}, {"complrs", Line2}, {"compldistrib", Line2}, {"numvoie", HouseNumber},
			{"typvoie", StreetType}, {"voie", StreetName}, {"compvoie", Suffix}, {"lieuditbp", Line2}, {"ligneacheminement", PostalTown},
			{"telephone", Phone},
		},
		kept: "nofinessej, commune, departement, libdepartement, telecopie, categetab, libcategetab, categagretab, libcategagretab, siret, codeape, codemft, libmft, codesph, libsph, date*",
	},
	{ // Sirene: the columns with a 2 are a second address
		marks: "siret, nic, numero voie etablissement, code postal2 etablissement",
		fields: []registerColumn{
			{"siret", ExternalID}, {"enseigne1 etablissement", Name}, {"denomination usuelle etablissement", Name},
			{"complement adresse etablissement", Line2}, {"numero voie etablissement", HouseNumber}, {"indice repetition etablissement", Suffix},
			{"type voie etablissement", StreetType}, {"libelle voie etablissement", StreetName}, {"code postal etablissement", PostalCode},
			{"libelle commune etablissement", City}, {"code commune etablissement", InseeCode},
		},
		kept: "*2 etablissement, siren, nic, dernier numero voie etablissement, indice repetition dernier numero voie etablissement, distribution speciale etablissement, code cedex etablissement, libelle cedex etablissement, libelle commune etranger etablissement, code pays etranger etablissement, libelle pays etranger etablissement, identifiant adresse etablissement",
	},
}

// applyRegister assigns the columns of the register from which the file comes, if any. Columns that people added are recognized like those
// of other files.
func (s *guesser) applyRegister() {
	names := make([]string, len(s.m.Columns))
	at := map[string]int{}
	for i, c := range s.m.Columns {
		names[i] = normalizeName(c)
		if _, isKnown := at[names[i]]; !isKnown {
			at[names[i]] = i
		}
	}
	for _, r := range registers {
		if !hasAll(at, r.marks) {
			continue
		}
		for _, c := range r.fields {
			i, ok := at[c.name]
			if _, isTaken := s.m.Find(c.field); !ok || s.isDecided[i] || s.profile.Columns[i].Filled == 0 || isTaken && c.field != Line2 {
				continue
			}
			if c.field == ExternalID && !s.profile.Columns[i].isUnique(s.profile.Rows) {
				continue
			}
			s.assign(i, c.field, ByName)
		}
		for i, name := range names {
			if !s.isDecided[i] && matchesAny(r.kept, name) {
				s.isDecided[i] = true // nameProperties gives the key
			}
		}
		return
	}
}

func hasAll(at map[string]int, marks string) bool {
	for name := range strings.SplitSeq(marks, ", ") {
		if _, ok := at[name]; !ok {
			return false
		}
	}
	return true
}

func matchesAny(patterns, name string) bool {
	for pattern := range strings.SplitSeq(patterns, ", ") {
		if MatchGlob(pattern, name) {
			return true
		}
	}
	return false
}
