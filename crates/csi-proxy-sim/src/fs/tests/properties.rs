//! What holds for any sequence of calls.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A file or a directory of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Directory,
    File(Vec<u8>),
}

/// A reference: what is there, by path in upper case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Reference(BTreeMap<String, Item>);

#[derive(Clone, Debug)]
enum Operation {
    CreateDirectories(String),
    Write(String, Vec<u8>),
    Read(String),
    RemoveFile(String),
    RemoveDirectory(String),
    RemoveTree(String, bool),
    Rename(String, String),
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('\\').map_or("", |parts| parts.0)
}

impl Reference {
    /// The code for a path that is not there: whether its directory is decides.
    fn missing(&self, path: &str) -> u32 {
        match self.is_directory(parent_of(path)) {
            true => 2,
            false => 3,
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        path == "C:" || self.0.get(path) == Some(&Item::Directory)
    }

    fn get(&self, path: &str) -> Result<&Item, u32> {
        self.0.get(path).ok_or_else(|| self.missing(path))
    }

    fn below(&self, path: &str) -> Vec<String> {
        let inside = format!(r"{path}\");
        let keys = self.0.keys();
        keys.filter(|key| key.starts_with(&inside))
            .cloned()
            .collect()
    }

    fn create_directories(&mut self, path: &str) -> Result<bool, u32> {
        let ends = path.match_indices('\\').map(|(end, _)| end).skip(1);
        let prefixes: Vec<&str> = ends.chain([path.len()]).map(|end| &path[..end]).collect();
        let is_file = |path: &&str| matches!(self.0.get(*path), Some(Item::File(_)));
        if prefixes.iter().any(is_file) {
            return Err(183);
        }
        let was_there = self.is_directory(path);
        for prefix in prefixes {
            self.0.insert(prefix.to_owned(), Item::Directory);
        }
        Ok(!was_there)
    }

    fn write(&mut self, path: &str, contents: &[u8]) -> Result<(), u32> {
        if !self.is_directory(parent_of(path)) {
            return Err(3);
        }
        if self.is_directory(path) {
            return Err(5);
        }
        self.0
            .insert(path.to_owned(), Item::File(contents.to_vec()));
        Ok(())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, u32> {
        match self.get(path)? {
            Item::Directory => Err(5),
            Item::File(contents) => Ok(contents.clone()),
        }
    }

    fn remove_file(&mut self, path: &str) -> Result<(), u32> {
        match self.get(path)? {
            Item::Directory => Err(5),
            Item::File(_) => {
                self.0.remove(path);
                Ok(())
            }
        }
    }

    fn remove_directory(&mut self, path: &str) -> Result<(), u32> {
        match self.get(path)? {
            Item::File(_) => Err(267),
            Item::Directory if !self.below(path).is_empty() => Err(145),
            Item::Directory => {
                self.0.remove(path);
                Ok(())
            }
        }
    }

    fn remove_tree(&mut self, path: &str, keep_root: bool) -> Result<(), u32> {
        match (self.get(path)?, keep_root) {
            (Item::File(_), true) => return Err(267),
            (_, true) => {}
            (_, false) => {
                self.0.remove(path);
            }
        }
        for path in self.below(path) {
            self.0.remove(&path);
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), u32> {
        self.get(from)?;
        if !self.is_directory(parent_of(to)) {
            return Err(3);
        }
        if from != to && self.0.contains_key(to) {
            return Err(183);
        }
        if to.starts_with(&format!(r"{from}\")) {
            return Err(32);
        }
        for path in self.below(from).into_iter().chain([from.to_owned()]) {
            let new = format!("{to}{}", &path[from.len()..]);
            let item = self.0.remove(&path).unwrap();
            self.0.insert(new, item);
        }
        Ok(())
    }
}

/// Both answers to an operation, in a form that compares.
fn apply(node: &mut Node, reference: &mut Reference, operation: &Operation) -> [String; 2] {
    fn show<T: std::fmt::Debug>(ours: FsResult<T>, theirs: Result<T, u32>) -> [String; 2] {
        let theirs: FsResult<T> = theirs.map_err(Refusal::Code);
        [format!("{ours:?}"), format!("{theirs:?}")]
    }
    match operation {
        Operation::CreateDirectories(path) => show(
            node.create_directories(path),
            reference.create_directories(&upcase(path)),
        ),
        Operation::Write(path, contents) => show(
            node.write(path, contents),
            reference.write(&upcase(path), contents),
        ),
        Operation::Read(path) => show(node.read(path), reference.read(&upcase(path))),
        Operation::RemoveFile(path) => {
            show(node.remove_file(path), reference.remove_file(&upcase(path)))
        }
        Operation::RemoveDirectory(path) => show(
            node.remove_directory(path),
            reference.remove_directory(&upcase(path)),
        ),
        Operation::RemoveTree(path, keep_root) => show(
            remove(node, path, *keep_root),
            reference.remove_tree(&upcase(path), *keep_root),
        ),
        Operation::Rename(from, to) => show(
            node.rename(from, to),
            reference.rename(&upcase(from), &upcase(to)),
        ),
    }
}

fn remove(node: &mut Node, path: &str, keep_root: bool) -> FsResult<()> {
    let at = at(path);
    files::remove_tree(&mut node.state, &RemoveTree { at, keep_root })
}

/// All that is below `C:\`, as the calls show it.
fn walk(node: &mut Node) -> Reference {
    let mut all = Reference::default();
    let mut open = vec!["C:".to_owned()];
    while let Some(directory) = open.pop() {
        for entry in node.view().list(&at(&format!(r"{directory}\"))).unwrap() {
            let path = format!(r"{directory}\{}", entry.name);
            let item = match entry.stat.directory {
                true => Item::Directory,
                false => Item::File(node.read(&path).unwrap()),
            };
            if item == Item::Directory {
                open.push(path.clone());
            }
            all.0.insert(upcase(&path), item);
        }
    }
    all
}

const NAMES: [&str; 8] = ["a", "A", "b", "B", "long name", "LONG NAME", "ö", "Ö"];

/// A path of one to three names out of four, in either case.
fn any_path(root: &'static str) -> impl Strategy<Value = String> {
    path_of(root, NAMES.to_vec())
}

/// The same, or with the short name of one of them.
fn any_spelling(root: &'static str) -> impl Strategy<Value = String> {
    let short = ["LONGNA~1", "longna~1"];
    path_of(root, NAMES.into_iter().chain(short).collect())
}

fn path_of(root: &'static str, names: Vec<&'static str>) -> impl Strategy<Value = String> {
    let name = prop::sample::select(names);
    prop::collection::vec(name, 1..4).prop_map(move |names| format!(r"{root}\{}", names.join(r"\")))
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let path = || any_path("C:");
    let contents = prop::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        3 => path().prop_map(Operation::CreateDirectories),
        3 => (path(), contents).prop_map(|(path, contents)| Operation::Write(path, contents)),
        1 => path().prop_map(Operation::Read),
        1 => path().prop_map(Operation::RemoveFile),
        1 => path().prop_map(Operation::RemoveDirectory),
        1 => (path(), any::<bool>()).prop_map(|(path, keep)| Operation::RemoveTree(path, keep)),
        2 => (path(), path()).prop_map(|(from, to)| Operation::Rename(from, to)),
    ]
}

/// How something in a tree leads out of it.
#[derive(Clone, Debug)]
enum Way {
    Link(String),
    Relative(String),
    Junction(String),
    Mount,
}

fn any_way() -> impl Strategy<Value = (String, Way)> {
    let way = prop_oneof![
        any_path(r"C:\out").prop_map(Way::Link),
        any_path(r"C:\in").prop_map(Way::Link),
        Just(Way::Link(r"C:\out".to_owned())),
        Just(Way::Relative(r"..\out".to_owned())),
        Just(Way::Relative(r"..\..\out\a".to_owned())),
        Just(Way::Junction(r"C:\out".to_owned())),
        Just(Way::Mount),
    ];
    (any_path(r"C:\in"), way)
}

/// A node with files that say `in` below `C:\in`, and files that say `out` below `C:\out` and
/// on volume 1, which ways out of `C:\in` lead to.
fn node_with(inside: &[String], outside: &[String], ways: &[(String, Way)]) -> Node {
    let mut node = Node::new();
    node.mkdir(r"C:\in");
    node.mkdir(r"C:\out");
    let volume = volume(1);
    node.state.put_file(&format!("{volume}f"), b"out").unwrap();
    // What is in the way of something else is left out.
    for (paths, contents) in [(inside, b"in".as_slice()), (outside, b"out")] {
        for path in paths {
            let directory = parent_of(path).to_owned();
            if node.create_directories(&directory).is_ok() {
                let _ = node.write(path, contents);
            }
        }
    }
    for (path, way) in ways {
        let _ = node.create_directories(parent_of(path));
        let _ = match way {
            Way::Link(target) | Way::Relative(target) => node.link(path, target),
            Way::Junction(target) => {
                let target = target.clone();
                let free = !node.exists(path) && node.exists(parent_of(path));
                if free {
                    let _ = node.state.put_link(path, Reparse::Junction { target });
                }
                Ok(())
            }
            Way::Mount => node
                .create_directories(path)
                .and_then(|_| node.mount(path, 1)),
        };
    }
    node
}

/// All that does not lie in `C:\in`, with the contents of the files.
fn outside_of(node: &Node) -> Vec<(String, Option<Vec<u8>>)> {
    let of = |number: u8, prefix: &str| {
        let paths = node.state.paths_of(&volume(number));
        let prefix = prefix.to_owned();
        paths
            .into_iter()
            .map(move |(path, _)| format!("{prefix}{path}"))
    };
    let device = volume(1).device().0;
    let all = of(0, "C:").chain(of(1, &device));
    all.filter(|path| !upcase(path).starts_with(r"C:\IN"))
        .map(|path| {
            let contents = node.state.file(&path).ok();
            (path, contents)
        })
        .collect()
}

proptest! {
    #[test]
    fn the_tree_does_what_a_map_of_paths_does(
        operations in prop::collection::vec(any_operation(), 1..40),
    ) {
        let mut node = Node::new();
        let mut reference = walk(&mut node);
        for operation in &operations {
            let [ours, theirs] = apply(&mut node, &mut reference, operation);
            prop_assert_eq!(ours, theirs, "{:?}", operation);
            prop_assert_eq!(&walk(&mut node), &reference, "{:?}", operation);
        }
        // Nothing is kept that no path leads to.
        let kept = node.state.fs.volumes[&volume(0)].nodes().count();
        prop_assert_eq!(kept, reference.0.len() + 1);
        let stored = serde_json::to_string(&node.state).unwrap();
        prop_assert_eq!(serde_json::from_str::<State>(&stored).unwrap(), node.state);
    }

    #[test]
    fn removing_a_tree_touches_nothing_that_only_links_lead_to(
        inside in prop::collection::vec(any_path(r"C:\in"), 0..6),
        outside in prop::collection::vec(any_path(r"C:\out"), 1..6),
        ways in prop::collection::vec(any_way(), 1..6),
        keep_root in any::<bool>(),
    ) {
        let mut node = node_with(&inside, &outside, &ways);
        let before = outside_of(&node);
        remove(&mut node, r"C:\in", keep_root).unwrap();
        prop_assert_eq!(outside_of(&node), before);
        prop_assert_eq!(node.exists(r"C:\in"), keep_root);
        if keep_root {
            prop_assert_eq!(node.names(r"C:\in"), [""; 0]);
        }
    }

    #[test]
    fn a_call_within_a_root_changes_and_reads_nothing_outside(
        inside in prop::collection::vec(any_path(r"C:\in"), 0..6),
        outside in prop::collection::vec(any_path(r"C:\out"), 1..6),
        ways in prop::collection::vec(any_way(), 1..6),
        path in any_spelling(r"C:\in"),
        other in any_spelling(r"C:\in"),
    ) {
        let mut node = node_with(&inside, &outside, &ways);
        // A volume that is mounted below the root lies within it.
        node.letter(1, 'E');
        let before = outside_of(&node);
        let root = r"C:\in";
        let (at, to) = (within(&path, root), super::path(&other));
        let read = ReadFile { at: at.clone(), limit: 100 };
        if let Ok(contents) = node.view().read_file(&read) {
            prop_assert_eq!(contents.0, b"in");
        }
        let write = WriteFile { at: at.clone(), contents: Bytes(b"in".to_vec()) };
        let link = CreateLink { at: at.clone(), target: other.clone() };
        let rename = Rename { at: at.clone(), to };
        let state = &mut node.state;
        let _ = files::write_file(state, &write);
        let _ = files::create_link(state, &link);
        let _ = files::create_directories(state, &at);
        let _ = files::rename(state, &rename);
        let _ = files::remove_file(state, &at);
        let _ = files::remove_tree(state, &RemoveTree { at: at.clone(), keep_root: true });
        let _ = files::remove_directory(state, &at);
        let _ = files::remove_tree(state, &RemoveTree { at, keep_root: false });
        prop_assert_eq!(outside_of(&node), before);
    }
}
