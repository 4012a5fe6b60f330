//! The lists and files of a script: numbers by client, and by round, server and cluster.

use crate::population::trace::columns::{Columns, Others};
use fedgenie_core::id::{ClientId, Round};
use fedgenie_learning::data::DataError;
use std::collections::BTreeMap;
use std::path::Path;

/// A number for each client, or for some.
#[derive(Debug)]
pub(super) struct ByClient {
    /// The key of a list, the name of a file.
    origin: String,
    is_list: bool,
    /// NaN for clients without one.
    numbers: Vec<f64>,
    /// The line of the largest client's row.
    last_line: u64,
}

impl ByClient {
    pub fn listed(key: &str, list: &[f64]) -> Self {
        Self { origin: format!("task.scripted.{key}"), is_list: true, numbers: list.to_vec(), last_line: 0 }
    }

    /// Reads a file `client,value`.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        const MOST: u32 = 1 << 26;
        let mut columns = Columns::open(path, &["client", "value"], Others::Refused)?;
        let (mut numbers, mut last_line) = (Vec::new(), 0);
        while columns.next()? {
            let client = id(&columns, 0)?;
            let value = columns.number(1)?;
            if client >= MOST {
                return Err(columns.wrong_field(0, format!("a number below {MOST}")));
            }
            let client = client as usize;
            if client >= numbers.len() {
                numbers.resize(client + 1, f64::NAN);
                last_line = columns.line();
            }
            if !numbers[client].is_nan() {
                return Err(columns.wrong(format!("client {client} has two rows; expected one")));
            }
            numbers[client] = value;
        }
        Ok(Self { origin: path.display().to_string(), is_list: false, numbers, last_line })
    }

    pub const fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    pub fn get(&self, client: ClientId) -> Option<f64> {
        self.numbers.get(client.index()).copied().filter(|number| !number.is_nan())
    }

    /// Checks against the number of clients: a list is complete, a file names no other clients.
    pub fn check(&self, clients: usize) -> Result<(), String> {
        let Self { origin, is_list, numbers, last_line } = self;
        match (is_list, numbers.len()) {
            (true, found) if found != clients && found > 0 => Err(format!(
                "found {found} numbers for {clients} clients{}; expected one for each",
                if found < clients { format!(": client {found} has none") } else { String::new() }
            )),
            (false, found) if found > clients => Err(format!(
                "{origin}:{last_line}: column \"client\": found {}; expected a client from 0 to {}",
                found - 1,
                clients - 1
            )),
            _ => Ok(()),
        }
    }

    /// Checks that these clients have a number, unless nobody has one.
    pub fn check_clients(&self, clients: &[ClientId]) -> Result<(), String> {
        let hole = clients.iter().find(|&&client| !self.is_empty() && self.get(client).is_none());
        match hole {
            Some(client) => {
                Err(format!("{}: there is no row with client {}, which is read now", self.origin, client.0))
            }
            None => Ok(()),
        }
    }
}

/// The number of an id.
fn id(columns: &Columns<'_>, column: usize) -> Result<u32, DataError> {
    let wrong = || columns.wrong_field(column, "a whole number from 0 on");
    columns.text(column).parse().map_err(|_| wrong())
}

/// Numbers under several ids: all columns but the last.
#[derive(Debug)]
pub(super) struct Table {
    origin: String,
    columns: &'static [&'static str],
    /// The number and its line.
    rows: BTreeMap<Vec<u32>, (f64, u64)>,
}

impl Table {
    pub fn read(path: &Path, names: &'static [&'static str]) -> Result<Self, DataError> {
        let mut columns = Columns::open(path, names, Others::Refused)?;
        let ids = names.len() - 1;
        let mut rows = BTreeMap::new();
        while columns.next()? {
            let key = (0..ids).map(|column| id(&columns, column)).collect::<Result<Vec<u32>, _>>()?;
            let value = columns.number(ids)?;
            if let Some((_, line)) = rows.insert(key, (value, columns.line())) {
                return Err(
                    columns.wrong(format!("has the {} of line {line}; expected one row", names[..ids].join(", ")))
                );
            }
        }
        Ok(Self { origin: path.display().to_string(), columns: names, rows })
    }

    /// The number under some ids.
    pub fn get(&self, ids: &[u32]) -> Result<f64, String> {
        let named = || {
            let each = self.columns.iter().zip(ids).map(|(name, id)| format!("{name} {id}"));
            format!("{}: there is no row with {}, which is read", self.origin, each.collect::<Vec<_>>().join(", "))
        };
        self.rows.get(ids).map(|(number, _)| *number).ok_or_else(named)
    }

    /// The last round that has a row.
    pub fn last_round(&self) -> Option<Round> {
        self.rows.last_key_value().map(|(ids, _)| Round(ids[0]))
    }

    /// Checks that every server named exists.
    pub fn check_servers(&self, servers: usize) -> Result<(), String> {
        let unknown = self.rows.iter().filter(|(ids, _)| ids[1] as usize >= servers).min_by_key(|(_, (_, line))| *line);
        match unknown {
            Some((ids, (_, line))) => Err(format!(
                "{}:{line}: column \"server\": found {}; expected a server from 0 to {}",
                self.origin,
                ids[1],
                servers - 1
            )),
            None => Ok(()),
        }
    }

    /// Checks that no number is negative.
    pub fn check_not_negative(&self) -> Result<(), String> {
        let negative = self.rows.values().filter(|(number, _)| *number < 0.0).min_by_key(|(_, line)| *line);
        let Some((number, line)) = negative else { return Ok(()) };
        let column = self.columns[self.columns.len() - 1];
        Err(format!("{}:{line}: column \"{column}\": found {number}; expected a number of at least 0", self.origin))
    }

    /// Checks that every server has a row of a round.
    pub fn check_round(&self, round: Round, servers: usize) -> Result<(), String> {
        (0..servers as u32).try_for_each(|server| self.get(&[round.0, server]).map(|_| ()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn columns_and_rows_may_be_in_any_order_and_holes_are_found_when_they_are_read() {
        let numbers = ByClient::read(file("value,client\n0.5,3\n0.25,1\n").path()).unwrap();
        assert_eq!([1, 3].map(|client| numbers.get(ClientId(client))), [Some(0.25), Some(0.5)]);
        assert_eq!([0, 9].map(|client| numbers.get(ClientId(client))), [None; 2]);
        assert!(numbers.check(4).is_ok() && numbers.check_clients(&[ClientId(3), ClientId(1)]).is_ok());
        assert!(
            numbers.check(3).unwrap_err().contains(":2: column \"client\": found 3; expected a client from 0 to 2")
        );
        assert!(numbers.check_clients(&[ClientId(1), ClientId(2)]).unwrap_err().contains("no row with client 2"));
    }

    #[test]
    fn what_is_empty_has_no_holes() {
        for nobody in [ByClient::listed("effects", &[]), ByClient::read(file("client,value\n").path()).unwrap()] {
            assert!(nobody.is_empty() && nobody.check(3).is_ok() && nobody.check_clients(&[ClientId(2)]).is_ok());
        }
    }

    #[test]
    fn a_table_has_a_number_for_each_of_its_ids() {
        let names = &["round", "server", "cluster", "loss"];
        let table = Table::read(file("loss,cluster,server,round\n0.5,2,1,0\n").path(), names).unwrap();
        assert_eq!(table.get(&[0, 1, 2]), Ok(0.5));
        assert!(table.get(&[0, 1, 0]).unwrap_err().contains("there is no row with round 0, server 1, cluster 0"));
        assert!(table.check_servers(2).is_ok());
        assert!(
            table.check_servers(1).unwrap_err().contains(":2: column \"server\": found 1; expected a server from 0")
        );
    }
}
