//! The identifiers of a disk (SCSI vital product data page 83).
