package mapping

// fieldNames is one line of the table of names: the names of columns that hold a field.
//
// All names are in the form of normalizeName: lower case, no accents, words separated by one space, articles left out. In
// a pattern * stands for one word or more. A word of not rules out the patterns, but never an exact name.
type fieldNames struct {
	field    Field
	exact    string // names, separated by commas; the earlier is the better one
	patterns string // weaker names
	not      string // words that show that a name is about something else
}

// namePatterns is the table of names. Its sources are this API, OpenStreetMap (addr:*, contact:*), schema.org, GTFS, the base Sirene, the
// schemas of schema.data.gouv.fr (charging points, car sharing, taxi stands, digital help) and the portals of data.gouv.fr,
// Opendatasoft and Socrata. Names of ten letters that break off (adr codepo) come from the dBASE part of shapefiles.
//
//nolint:lll // a table
var namePatterns = []fieldNames{
	{ExternalID,
		"external id, id externe, externalid, @id, id, identifiant, identifier, uid, uuid, reference, ref, id site, site id, id local, id lieu, store id, storeid, store code, storecode, id magasin, code magasin, code site, code client, stop id, place id, osm id, id station, id pdc, id pdc itinerance, id pdc local, id etablissement, id structure, recordid, code",
		"id *, * id, identifiant *, * identifiant, ref *, * ref, reference *, code *, * code, numero *, num *, n *, cle *, siret, * siret, siret *, finess, * finess, finess *, nofinesset, uai, rne, * uai, rna, uic, cip, gln, pdv, osm id, gml id, matricule, code uic, * code *",
		"postal post cp insee commune com ville departement dep region pays naf ape nature type types categorie categories academie circonscription voie rivoli fantoir ligne line zone parent objet couleur tarif operateur amenageur proprietaire siren collectivite coll epci canton secteur arrondissement postale mere bassin barre fax telephone tel mobile portable appel embed qualite statut service lda zdl idref wikidata telephonique rue iris ordre rang tva ean"},
	{Name,
		"nom, name, nom usuel, nomusuel, nom complet, nom long, nom officiel, libelle, label, intitule, denomination, raison sociale, raisonsociale, rs, rslongue, enseigne, nom commercial, nom enseigne, enseigne 1 etablissement, enseigne1 etablissement, denomination usuelle etablissement, denomination unite legale, denominationunitelegale, title, titre, appellation, appellation officielle, designation, stop name, n station, nom lieu, display name, displayname, business name, company, company name, nom carto, nom offre touristique, libelle gare, name fr, nom fr, toponyme",
		"nom *, * nom, * name, * nom fr, * name fr, libelle *, denomination *, * denomination, enseigne *, * enseigne, intitule *, appellation *, titre *, * titre, raison sociale *, * rs, structure, etablissement, magasin, agence, boutique, gare, station, musee, hotel, restaurant, pharmacie, ecole, entreprise, societe, organisme, association, point vente, lieu, equipement",
		"commune com ville dep departement region rue voie pays operateur operator amenageur gestionnaire exploitant proprietaire contact responsable maire directeur gerant president chef prenom fichier file user auteur academie circonscription bureau epci canton quartier court short alt old int reg brand marque jour lda zdl iv sous sur type nature statut categorie naf ape activite code id ligne secteur zone etat source dirigeant famille zdc zda unite legale ministere collectivite coll reseau first last usage host domain parent mere"},
	{HouseNumber,
		"numero voie, num voie, numero dans voie, adresse num voie, numvoie, numero voie etablissement, no voie, n voie, numero rue, num rue, n rue, house number, housenumber, addr housenumber, contact housenumber, street number, streetnumber, adresse numero, numero adresse, num adresse, adr numero, numero maison, adresse num",
		"numero voie *, * numero voie, * housenumber, num voie *", "type nom libelle"},
	{bareNumber, "n, no, num, numero, nr, nb voie", "", ""},
	{Suffix, "indice repetition, indice repetition etablissement, rep, suffixe, bis ter, indrep, btq, bister, repetition, suffixe voie, complement numero, numero suffixe", "* indice repetition, suffixe *", ""},
	{StreetType, "type voie, typvoie, typ voie, type rue, nature voie, type voie etablissement, libelle type voie, typevoie, adresse type voie", "type voie *, * type voie", ""},
	{StreetName,
		"voie, rue, street, nom voie, voie libelle, libelle rue, libelle voie, libelle voie etablissement, libvoie, lib voie, nom rue, addr street, contact street, street name, streetname, adr voie, adresse voie, adresse rue, voie nom, nomvoie, adresse nom voie, thoroughfare, route",
		"nom voie *, * nom voie, libelle voie *, * libelle voie, * street, rue *, * voie",
		"type numero num code rivoli fantoir id"},
	{Line1,
		"ligne 1, ligne1, adresse, address, adresse 1, adresse1, address 1, address1, line 1, line1, address line 1, addressline1, adr, adr 1, adr1, addr, adresse ligne 1, adresse ligne1, adresse complete, adresse postale, addr full, full address, fulladdress, street address, streetaddress, formatted address, formattedaddress, adresse etablissement, adresse station, ad station, ad lieu, adresse lieu, localisation adresse, adresse physique, adresse siege",
		"adresse *, * adresse, address *, * address, adr *, ad *, * adr",
		"mail email e courriel web site url internet ip mac 2 3 4 adresse2 adresse3 partie suite complement cp code postal postale postcode ville commune com city pays country id ban cle interop insee type departement region lat lon validee precision score codeinsee"},
	{Line2,
		"ligne 2, ligne2, complement, complement adresse, adresse complement, adresse 2, adresse2, adresse 3, adresse3, adresse 4, adresse partie 2, adresse partie 3, adresse1 suite, adresse1suite, adresse suite, address 2, address2, line 2, line2, address line 2, addressline2, adresse ligne 2, adresse ligne2, adr 2, adr2, compldistrib, compladr, compl adresse, complement adresse etablissement, complement geographique, batiment, residence, addr unit, lieu dit, lieudit, complement voie, complement localisation",
		"complement adresse *, * complement adresse, adresse complement *",
		""},
	{PostalCode,
		"code postal, codepostal, cp, postcode, postal code, postalcode, zip, zipcode, zip code, codepost, code post, addr postcode, contact postcode, code postal etablissement, cpostal, codpos, adr codepo, adr code postal, adr cp, adresse cp, adresse code postal, post code, c post code, ad cp, cd postal, cpo, consolidated code postal",
		"code postal *, * code postal, * codepostal, cp *, * cp, * postcode, * zip, * zipcode, * postal code", ""},
	{City,
		"commune, ville, city, town, localite, nom commune, nomcommune, nom com, nomcom, libelle commune, libcommune, municipality, municipalite, addr city, contact city, adr commun, com lieu, commune nom, com nom, com name, l com name, c com name, l com, nom ville, village, libelle commune etablissement, address locality, addresslocality, locality, bureau distributeur, acheminement, libelle acheminement, lib com, libcom, com lib, adresse ville, adresse commune, adr ville, adr municipalite, consolidated commune, commune lieu visite",
		"commune *, * commune, ville *, * ville, * city, nom commune *, * nom commune, libelle commune *",
		"code insee id siren population cp postal maire mairie url fleuri village acces codeinsee type"},
	{PostalTown,
		"cp ville, cp commune, code postal ville, code postal commune, cpville, cpcommune, codepostal ville, codepostal commune, cp localite, code postal localite, ville cp, commune cp, ville code postal, commune code postal, localite cp, postcode city, zip city, city zip, city postcode, postal town, ligne acheminement, ligneacheminement, acheminement, bureau distributeur",
		"cp * ville, code postal * ville, cp * commune, code postal * commune", ""},
	{InseeCode,
		"code insee, insee, codeinsee, code commune, codecommune, insee code, insee com, com insee, citycode, city code, depcom, codgeo, code com, code insee commune, code commune insee, com code, c com code, commune code, code commune etablissement, consolidated code insee commune, ref insee, insee commune, code insee lieu",
		"code insee *, * code insee, * insee, insee *, code commune *, * code commune, * citycode", "dep departement region"},
	{Country, "pays, country, country code, countrycode, code pays, addr country, contact country, nom pays, libelle pays", "", ""},
	{IDBan, "id ban, ban id, idban, id ban adresse, id adresse ban, banid", "", ""},
	{Lat,
		"lat, latitude, ylatitude, y latitude, ylat, y lat, y wgs84, lat wgs84, latitude wgs84, coord lat, coordonnees lat, geo lat, stop lat, consolidated latitude, etab lat, gps lat, gps latitude, location lat, geoloc lat, lat y, latitude y, coord y wgs84, latwgs84, y gps",
		"latitude *, * latitude, * lat, lat *", "centroid bbox min max"},
	{Lon,
		"lon, lng, long, longitude, xlongitude, x longitude, xlong, x long, xlon, x lon, x wgs84, lon wgs84, long wgs84, longitude wgs84, coord lng, coord lon, coord long, coordonnees lon, coordonnees long, geo lon, geo lng, stop lon, consolidated longitude, etab lon, gps lon, gps lng, gps longitude, location lng, geoloc lng, lon x, longitude x, lonwgs84, x gps",
		"longitude *, * longitude, * lon, * lng, lon *, lng *, * long", "nom centroid bbox min max"},
	{Pair,
		"geo point 2d, geo point, geopoint, geopoint2d, point geo, geolocalisation, geolocation, geoloc, coordonnees, coordonnees xy, coordonneesxy, coordonnees gps, coordonnees geographiques, coordonnees finales, gps, position, wgs84, lat lng, latlng, lat lon, latlon, lat long, latlong, lng lat, lon lat, lonlat, coords, coordinates, localisation, location, c geo, geo, point, geo point borne, xy",
		"coordonnees *, * coordonnees, geo point *, geolocalisation *, * geolocalisation, * gps, gps *, * coords, * coordinates", ""},
	{Shape, "geo shape, geoshape, geometry, geometrie, geom, the geom, wkt, wkt geom, wkb geometry, shape, polygone, trace", "* geometry, * geom, * wkt, * shape", ""},
	{X,
		"x, coordx, coord x, x coord, xcoord, x l93, xl93, x lambert93, x lambert 93, x lamb93, lambert x, lambert93 x, l93 x, x rgf93, x 2154, coord x origine, coordx origine, easting, point x, x etab, coordonnees x, coordonnee x, coordonnee lambert abscisse etablissement, coordxet, x utm, xcc, longitude l93",
		"coord x *, x *, * x", "wgs84 gps"},
	{Y,
		"y, coordy, coord y, y coord, ycoord, y l93, yl93, y lambert93, y lambert 93, y lamb93, lambert y, lambert93 y, l93 y, y rgf93, y 2154, coord y origine, coordy origine, northing, point y, y etab, coordonnees y, coordonnee y, coordonnee lambert ordonnee etablissement, coordyet, y utm, ycc, latitude l93",
		"coord y *, y *, * y", "wgs84 gps"},
	{Hours,
		"horaires, horaire, hours, opening hours, openinghours, opening hours specification, openinghoursspecification, horaires ouverture, horaire ouverture, heures ouverture, heure ouverture, jours heures ouverture, opening times, ouverture, horaires lieu",
		"horaires *, * horaires, horaire *, heures ouverture *, * opening hours, opening hours *, ouverture *", "date debut fin type url vacances source maj covid kitchen check signed fermeture annuelle exceptionnelle debut ete hiver"},
	{Monday, "lundi, monday, lun, mon, horaires lundi, horaire lundi, lundi horaires, ouverture lundi, hours monday, monday hours", "horaires lundi *, lundi *, * lundi, * monday, monday *", "debut fin ouvert start end"},
	{Tuesday, "mardi, tuesday, mar, tue, horaires mardi, horaire mardi, mardi horaires, ouverture mardi, hours tuesday, tuesday hours", "horaires mardi *, mardi *, * mardi, * tuesday, tuesday *", "debut fin ouvert start end"},
	{Wednesday, "mercredi, wednesday, mer, wed, horaires mercredi, horaire mercredi, mercredi horaires, ouverture mercredi, hours wednesday, wednesday hours", "horaires mercredi *, mercredi *, * mercredi, * wednesday, wednesday *", "debut fin ouvert start end"},
	{Thursday, "jeudi, thursday, jeu, thu, horaires jeudi, horaire jeudi, jeudi horaires, ouverture jeudi, hours thursday, thursday hours", "horaires jeudi *, jeudi *, * jeudi, * thursday, thursday *", "debut fin ouvert start end"},
	{Friday, "vendredi, friday, ven, fri, horaires vendredi, horaire vendredi, vendredi horaires, ouverture vendredi, hours friday, friday hours", "horaires vendredi *, vendredi *, * vendredi, * friday, friday *", "debut fin ouvert start end"},
	{Saturday, "samedi, saturday, sam, sat, horaires samedi, horaire samedi, samedi horaires, ouverture samedi, hours saturday, saturday hours", "horaires samedi *, samedi *, * samedi, * saturday, saturday *", "debut fin ouvert start end"},
	{Sunday, "dimanche, sunday, dim, sun, horaires dimanche, horaire dimanche, dimanche horaires, ouverture dimanche, hours sunday, sunday hours", "horaires dimanche *, dimanche *, * dimanche, * sunday, sunday *", "debut fin ouvert start end"},
	{Phone,
		"telephone, tel, phone, phone number, phonenumber, telephone 1, telephone1, tel 1, tel1, numero telephone, n telephone, num tel, num telephone, numtel, n tel, tel fixe, telephone fixe, contact phone, no appel, telephone public, mobile, portable, contact mobile, tel mobile, telephone mobile, telephone portable, n telephone fixe, n telephone mobile, telephonnes",
		"telephone *, * telephone, tel *, * tel, * phone, phone *, numero telephone *, * mobile", "fax type operateur application appli"},
	{Email,
		"email, mail, e mail, courriel, courriels, adresse mail, adresse email, adresse e mail, adresse courriel, contact email, mel, emails, contact mail",
		"* email, * mail, email *, mail *, courriel *, * courriel, e mail *", ""},
	{Website,
		"site web, siteweb, sitweb, website, web, site internet, siteinternet, adresse web, adresse site internet, contact website, url site web, url site, site url, adresse site, url, site, lien, lien site, link, homepage, internet, www, url web, web site, site officiel",
		"site web *, * site web, site internet *, * url, * website, * site internet", "video photo image images logo pdf facebook instagram twitter picto widget wikipedia source jeu dataset fichier embed reservation doctolib linkedin youtube api png jpg vignette menu tiktok verification fiche sirene source"},
	{Tags, "tags, tag, etiquettes, mots cles, mot cle, keywords, categories", "", ""},
	{Properties, "proprietes", "", ""},
	{Active, activeNames + ", " + shutNames + ", statut, status, etat, ouvert, open, is open, etat administratif, etat administratif etablissement, statut administratif, business status, statut activite, etat activite, statut ouverture, etat ouverture", "", ""},
}

// activeNames and shutNames are the names of columns in which yes means that a site is in business, or that it is not.
const (
	activeNames = "actif, active, is active, est actif, est active, enabled, activite, service, exploitation"
	shutNames   = "ferme, fermee, closed, is closed, est ferme, inactif, inactive, desactive, disabled, ferme definitivement"
)

// articles are optional words of a name. They are left out before names are compared.
const articles = "de du des d la le les l the of au aux en et"

// subjectWords are words for the subject of a row. `nom_etablissement` and `nom` mean the same; a name is looked up without them if
// it is not in the table with them.
const subjectWords = "etablissement etablissements etab site sites lieu station gare magasin point vente store shop place structure musee ecole pharmacie agence hotel restaurant borne aire equipement stop lieux poi commerce boutique marche bibliotheque organisme centre amenity venue location office"

// placeWords are further words for the subject of a row, besides subjectWords: those that follow the number of a site.
const placeWords = "client clients pdv adherent franchise franchises depot entrepot local batiment enseigne succursale filiale cabinet garage salle club caserne boutiques magasins gares stations agences ecoles cave laboratoire clinique residence chantier parking"

// idWords are words that show that a name is about a number or a code.
const idWords = "n no nr num numero code id identifiant identifier ref reference cle key matricule"

// containers are members of JSON that hold the facts of the row and are not entities of their own. `contact.phone` is the phone of
// the row; `manager.phone` is not.
const containers = "address adresse addr adresses location localisation localization geo geoloc _geoloc coord coords coordinates coordonnees position contact contacts properties props fields attributes tags place lieu site store record data info infos geometry node element center gps metadata horaires shop poi"

// geocoderPrefixes begin the names of columns that a geocoder wrote. They repeat the address.
var geocoderPrefixes = []string{"result_", "geocodeur_"}

// readOnlyMembers are the members of an exported site that only the service sets, as they are written. In a file that lieudit
// exported they are skipped.
var readOnlyMembers = []string{"id", "referentiel", "geocode_score", "geocode_precision", "position_source", "actif", "version", "cree_le", "modifie_le", "desactive_le", "distance"}
